// MariaDB Connector/J, with statements that the server prepares: Connector.java HOST PORT USER PASSWORD SCHEMA
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.sql.*;
import java.util.*;

public class Connector {
    static String host, port, user, schema, login;
    static Connection c;

    interface Action { void run() throws Exception; }

    public static void main(String[] args) throws Exception {
        host = args[0]; port = args[1]; user = args[2]; schema = args[4];
        String password = args[3];
        login = System.getenv("LOGIN");
        c = connect(password);
        DatabaseMetaData meta = c.getMetaData();
        step("client", meta.getDriverName() + " " + meta.getDriverVersion());
        step("connect", list(meta.getDatabaseProductVersion(), meta.getDatabaseMajorVersion(), c.getCatalog(), c.getTransactionIsolation()));
        step("session", rows(System.getenv("SESSION")));

        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery("SELECT * FROM types ORDER BY id")) {
            ResultSetMetaData m = r.getMetaData();
            List<Object> columns = new ArrayList<>();
            for (int i = 1; i <= m.getColumnCount(); i++) {
                columns.add(list(m.getColumnName(i), m.getColumnTypeName(i), m.getColumnType(i), m.getPrecision(i),
                    m.getScale(i), m.isNullable(i), m.isSigned(i), m.isAutoIncrement(i), m.getTableName(i)));
            }
            step("types", list(columns, all(r)));
        }
        try (Statement s = c.createStatement()) {
            int n = s.executeUpdate("UPDATE types SET i = i + 1 WHERE id = 1");
            step("text", list(n, rows("SELECT i FROM types"), rows("SELECT 'it''s', 'größe 🌊'")));
        }
        try (PreparedStatement s = c.prepareStatement("SELECT ? + 1, ?, HEX(?), ? IS NULL")) {
            bind(s, 41, "größe 🌊", new byte[] {0, (byte) 0xff, '\''}, null);
            List<Object> first = all(s.executeQuery());
            bind(s, -1, "", new byte[0], 0);
            List<Object> second = all(s.executeQuery());
            try (PreparedStatement types = c.prepareStatement("SELECT * FROM types ORDER BY id")) {
                step("prepared", list(first, second, all(types.executeQuery())));
            }
        }

        List<Object> ids = new ArrayList<>();
        try (Statement s = c.createStatement();
                PreparedStatement p = c.prepareStatement("INSERT INTO photos (title) VALUES (?)", Statement.RETURN_GENERATED_KEYS)) {
            s.executeUpdate("INSERT INTO photos (title) VALUES ('sea')", Statement.RETURN_GENERATED_KEYS);
            ids.add(key(s));
            p.setString(1, "hill");
            p.executeUpdate();
            ids.add(key(p));
            s.executeUpdate("INSERT INTO photos (title) VALUES ('a'), ('b'), ('c')", Statement.RETURN_GENERATED_KEYS);
            ids.add(key(s));
            step("insert id", ids);

            List<Object> counts = new ArrayList<>();
            counts.add(one("SELECT COUNT(*) FROM photos"));
            c.setAutoCommit(false);
            p.setString(1, "gone");
            p.executeUpdate();
            c.rollback();
            counts.add(one("SELECT COUNT(*) FROM photos"));
            p.setString(1, "kept");
            p.executeUpdate();
            c.commit();
            c.setAutoCommit(true);
            counts.add(one("SELECT COUNT(*) FROM photos"));
            step("transaction", counts);

            // A batch: several executions, sent before the first answer.
            c.setAutoCommit(false);
            for (String title : new String[] {"x", "y", "z"}) {
                p.setString(1, title);
                p.addBatch();
            }
            int[] done = p.executeBatch();
            c.rollback();
            c.setAutoCommit(true);
            step("batch", list(done.length, done[0], one("SELECT COUNT(*) FROM photos")));
        }

        byte[] big = new byte[Integer.parseInt(System.getenv("BIG"))];
        byte[] pattern = "0123456789abcde\0".getBytes(StandardCharsets.US_ASCII);
        for (int i = 0; i < big.length; i++) {
            big[i] = pattern[i % 16];
        }
        try (PreparedStatement s = c.prepareStatement("INSERT INTO big VALUES (1, ?)")) {
            s.setBytes(1, big);
            s.executeUpdate();
        }
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery("SELECT LENGTH(data), SHA2(data, 256), data FROM big")) {
            r.next();
            byte[] back = r.getBytes(3);
            step("big", list(r.getString(1), r.getString(2), back.length, sha256(back)));
        }

        List<Object> errors = new ArrayList<>();
        for (String sql : new String[] {"INSERT INTO photos (title) VALUES ('sea')", "SELECT * FROM nothing", "SELEKT 1"}) {
            errors.add(refused(() -> { try (Statement s = c.createStatement()) { s.execute(sql); } }));
        }
        step("error", errors);
        step("after", rows("SELECT 1"));

        List<Object> results = new ArrayList<>();
        try (CallableStatement s = c.prepareCall("{CALL two(?, ?)}")) {
            s.setInt(1, 7);
            s.registerOutParameter(2, Types.INTEGER);
            for (boolean more = s.execute(); more; more = s.getMoreResults()) {
                results.add(all(s.getResultSet()));
            }
            results.add(s.getInt(2));
        }
        try (Statement s = c.createStatement()) {
            for (boolean more = s.execute("SELECT 1; SELECT 'two'"); more; more = s.getMoreResults()) {
                results.add(all(s.getResultSet()));
            }
            s.setFetchSize(1); // rows one by one as they come
            results.add(all(s.executeQuery("SELECT title FROM photos ORDER BY id")));
        }
        step("results", results);

        // A timer of the driver kills the statement over a second connection.
        List<Object> late;
        try (Statement s = c.createStatement()) {
            s.setQueryTimeout(1);
            late = refused(() -> s.executeQuery("SELECT SLEEP(20) FROM photos"));
        }
        step("timeout", list(late, rows("SELECT 'goes on'")));

        try (Statement s = c.createStatement()) {
            int n = s.executeUpdate("LOAD DATA LOCAL INFILE '" + System.getenv("INFILE") + "' INTO TABLE words");
            List<Object> loaded = list(n, rows("SELECT COUNT(*), SUM(n), MIN(word) FROM words"));
            List<Object> missing = refused(() -> s.execute("LOAD DATA LOCAL INFILE '/none/file' INTO TABLE words"));
            step("infile", list(loaded, !missing.get(0).equals("no error"), rows("SELECT COUNT(*) FROM words")));
        }

        String sequence = System.getenv("SEQUENCE");
        if (!sequence.isEmpty()) {
            String insert = "INSERT INTO keyed VALUES (NEXTVAL('" + sequence + "'), ";
            // In front of MariaDB the driver writes the timeout into the statement: SET STATEMENT ... FOR.
            try (Statement s = c.createStatement()) {
                s.setQueryTimeout(30);
                s.executeUpdate(insert + "'" + login + "')", Statement.RETURN_GENERATED_KEYS);
                step("nextval", list(key(s), one("SELECT LAST_INSERT_ID()"), one("SELECT MAX(id) FROM keyed")));
            }
            try (PreparedStatement s = c.prepareStatement(insert + "?)", Statement.RETURN_GENERATED_KEYS)) {
                s.setQueryTimeout(30);
                s.setString(1, login);
                s.executeUpdate();
                step("nextval prepared", list(key(s), one("SELECT LAST_INSERT_ID()"), one("SELECT MAX(id) FROM keyed")));
            }
        }
        c.close();
        step("refused", refused(() -> connect("wrong")));
    }

    static Connection connect(String password) throws SQLException {
        Properties p = new Properties();
        p.setProperty("user", user);
        p.setProperty("password", password);
        p.setProperty("useServerPrepStmts", "true");
        p.setProperty("allowMultiQueries", "true");
        p.setProperty("allowLocalInfile", "true");
        p.setProperty("allowPublicKeyRetrieval", "true");
        if (login.equals("tls")) {
            p.setProperty("useSsl", "true");
            p.setProperty("trustServerCertificate", "true");
        }
        if (login.equals("compress")) {
            p.setProperty("useCompression", "true");
        }
        return DriverManager.getConnection("jdbc:mariadb://" + host + ":" + port + "/" + schema, p);
    }

    static List<Object> refused(Action action) throws Exception {
        try {
            action.run();
        } catch (SQLException e) {
            // The driver puts the address and the connection's number into the text.
            return list(e.getErrorCode(), e.getSQLState(), e.getMessage().replaceAll("\\(conn=-?\\d+\\) |\\(port=\\d+\\)", ""));
        }
        return list("no error", null, null);
    }

    static void bind(PreparedStatement s, Object... values) throws SQLException {
        for (int i = 0; i < values.length; i++) {
            s.setObject(i + 1, values[i]);
        }
    }

    static List<Object> rows(String sql) throws SQLException {
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(sql)) {
            return all(r);
        }
    }

    static Object one(String sql) throws SQLException {
        return ((List<?>) rows(sql).get(0)).get(0);
    }

    static String key(Statement s) throws SQLException {
        try (ResultSet r = s.getGeneratedKeys()) {
            return r.next() ? r.getString(1) : null;
        }
    }

    static List<Object> all(ResultSet r) throws SQLException {
        List<Object> rows = new ArrayList<>();
        int n = r.getMetaData().getColumnCount();
        while (r.next()) {
            List<Object> row = new ArrayList<>();
            for (int i = 1; i <= n; i++) {
                byte[] raw = r.getBytes(i);
                String type = r.getMetaData().getColumnTypeName(i);
                boolean bytes = type.contains("BLOB") || type.contains("BINARY") || type.startsWith("BIT");
                row.add(raw == null ? null : bytes ? new BigInteger(1, raw).toString(16) : r.getString(i));
            }
            rows.add(row);
        }
        return rows;
    }

    static String sha256(byte[] b) throws Exception {
        return String.format("%064x", new BigInteger(1, MessageDigest.getInstance("SHA-256").digest(b)));
    }

    static List<Object> list(Object... values) {
        return new ArrayList<>(Arrays.asList(values));
    }

    static void step(String name, Object value) {
        System.out.println("{\"step\":" + json(name) + ",\"value\":" + json(value) + "}");
    }

    static String json(Object v) {
        if (v == null) {
            return "null";
        }
        if (v instanceof List) {
            StringJoiner all = new StringJoiner(",", "[", "]");
            ((List<?>) v).forEach(x -> all.add(json(x)));
            return all.toString();
        }
        StringBuilder text = new StringBuilder("\"");
        for (char ch : v.toString().toCharArray()) {
            text.append(ch < ' ' || ch > '~' || ch == '"' || ch == '\\' ? String.format("\\u%04x", (int) ch) : String.valueOf(ch));
        }
        return text.append('"').toString();
    }
}
