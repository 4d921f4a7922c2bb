// The generated keys of MariaDB Connector/J: Keys HOST PORT USER PASSWORD SCHEMA [KEY]
import java.sql.*;
import java.util.*;

public class Keys {
    static String url, user, password, key;
    static Connection c;

    public static void main(String[] args) throws Exception {
        url = "jdbc:mariadb://" + args[0] + ":" + args[1] + "/" + args[4] + "?allowPublicKeyRetrieval=true&allowMultiQueries=true&";
        user = args[2];
        password = args[3];
        key = args.length > 5 ? args[5] : "";
        // Statements of the server and of the driver; batches row by row, rewritten into one statement, and in bulk.
        for (String options : new String[] {
            "useServerPrepStmts=true&useBulkStmts=false", "useServerPrepStmts=false&useBulkStmts=false",
            "rewriteBatchedStatements=true&useBulkStmts=false", "useServerPrepStmts=true&useBulkStmts=true",
        }) {
            try (Connection one = DriverManager.getConnection(url + options, user, password)) {
                c = one;
                run(options);
            }
        }
    }

    static void run(String options) throws SQLException {
        String prefix = Integer.toHexString(options.hashCode());
        try (Statement s = c.createStatement()) {
            s.executeUpdate(insert(quoted(prefix, 1)), Statement.RETURN_GENERATED_KEYS);
            step(options + ": text", s, prefix, 1, 1);
            s.executeUpdate(insert(quoted(prefix, 2), quoted(prefix, 3), quoted(prefix, 4)), Statement.RETURN_GENERATED_KEYS);
            step(options + ": rows in a text", s, prefix, 2, 4);
        }
        try (PreparedStatement s = c.prepareStatement(insert("?"), Statement.RETURN_GENERATED_KEYS)) {
            s.setString(1, prefix + 5);
            s.executeUpdate();
            step(options + ": prepared", s, prefix, 5, 5);
            for (int i = 10; i < 15; i++) {
                s.setString(1, prefix + i);
                s.addBatch();
            }
            s.executeBatch();
            step(options + ": batch", s, prefix, 10, 14);
        }
        try (PreparedStatement s = c.prepareStatement(insert("?", "?", "?"), new String[] {"id"})) {
            for (int i = 0; i < 3; i++) {
                s.setString(1 + i, prefix + (6 + i));
            }
            s.executeUpdate();
            step(options + ": rows prepared", s, prefix, 6, 8);
        }
        try (PreparedStatement s = c.prepareStatement(insert("?") + " ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)", Statement.RETURN_GENERATED_KEYS)) {
            s.setString(1, prefix + 3);
            s.executeUpdate();
        }
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery("SELECT LAST_INSERT_ID()")) {
            r.next();
            print(options + ": found", row(r.getString(1), prefix + 3), prefix, 3, 3);
        }
    }

    static String quoted(String prefix, int i) {
        return "'" + prefix + i + "'";
    }

    static String insert(String... titles) {
        StringJoiner rows = new StringJoiner(", ");
        for (String title : titles) {
            rows.add("(" + (key.isEmpty() ? "" : key + ", ") + title + ")");
        }
        return "INSERT INTO photos (" + (key.isEmpty() ? "" : "id, ") + "title) VALUES " + rows;
    }

    // The keys that the driver tells, for the titles from first to last.
    static void step(String name, Statement s, String prefix, int first, int last) throws SQLException {
        StringJoiner told = new StringJoiner(",");
        try (ResultSet r = s.getGeneratedKeys()) {
            for (int i = first; r.next(); i++) {
                told.add(row(r.getString(1), prefix + i));
            }
        }
        print(name, told.toString(), prefix, first, last);
    }

    static void print(String name, String told, String prefix, int first, int last) throws SQLException {
        StringJoiner titles = new StringJoiner("','", "'", "'");
        for (int i = first; i <= last; i++) {
            titles.add(prefix + i);
        }
        StringJoiner rows = new StringJoiner(",");
        try (Statement q = c.createStatement(); ResultSet r = q.executeQuery("SELECT id, title FROM photos WHERE title IN (" + titles + ") ORDER BY id")) {
            while (r.next()) {
                rows.add(row(r.getString(1), r.getString(2)));
            }
        }
        System.out.println("{\"step\":\"" + name + "\",\"value\":[[" + told + "],[" + rows + "]]}");
    }

    static String row(String id, String title) {
        return "[\"" + id + "\",\"" + title + "\"]";
    }
}
