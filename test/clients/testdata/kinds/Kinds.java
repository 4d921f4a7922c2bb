// The keys that MariaDB Connector/J tells: Kinds HOST PORT USER PASSWORD SCHEMA STEP...
// A step has fields between tabs: its name, how the statement is run, the statement, and values.
import java.sql.*;
import java.util.*;

public class Kinds {
    public static void main(String[] args) throws Exception {
        String url = "jdbc:mariadb://" + args[0] + ":" + args[1] + "/" + args[4] + "?allowPublicKeyRetrieval=true&useServerPrepStmts=true&useBulkStmts=true";
        try (Connection c = DriverManager.getConnection(url, args[2], args[3])) {
            for (String step : Arrays.asList(args).subList(5, args.length)) {
                String[] fields = step.split("\t");
                String told;
                try {
                    told = "[" + run(c, fields) + "]";
                } catch (SQLException e) {
                    told = "\"" + code(e) + "\"";
                }
                System.out.println("{\"step\":\"" + fields[0] + "\",\"value\":" + told + "}");
            }
        }
    }

    // A batch's error may be the cause of another.
    static int code(Throwable e) {
        while (e instanceof BatchUpdateException && e.getCause() instanceof SQLException) {
            e = e.getCause();
        }
        return ((SQLException) e).getErrorCode();
    }

    static String run(Connection c, String[] fields) throws SQLException {
        String how = fields[1], sql = fields[2];
        if (how.equals("rows")) {
            try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(sql)) {
                return keys(r);
            }
        }
        if (how.equals("text")) {
            try (Statement s = c.createStatement()) {
                s.executeUpdate(sql, Statement.RETURN_GENERATED_KEYS);
                return keys(s.getGeneratedKeys());
            }
        }
        try (PreparedStatement s = c.prepareStatement(sql, Statement.RETURN_GENERATED_KEYS)) {
            for (int i = 3; i < fields.length; i++) {
                s.setString(1, fields[i]);
                if (how.equals("batch")) {
                    s.addBatch();
                }
            }
            if (how.equals("batch")) {
                s.executeBatch();
            } else {
                s.executeUpdate();
            }
            return keys(s.getGeneratedKeys());
        }
    }

    static String keys(ResultSet r) throws SQLException {
        StringJoiner all = new StringJoiner(",");
        while (r.next()) {
            all.add("\"" + r.getString(1) + "\"");
        }
        return all.toString();
    }
}
