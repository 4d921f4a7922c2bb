// Asks the proxy by MariaDB Connector/J: Asking HOST PORT USER PASSWORD SCHEMA
import java.sql.*;

public class Asking {
    public static void main(String[] args) throws Exception {
        String url = "jdbc:mariadb://" + args[0] + ":" + args[1] + "/" + args[4] + "?allowPublicKeyRetrieval=true&useServerPrepStmts=true";
        try (Connection c = DriverManager.getConnection(url, args[2], args[3]); Statement s = c.createStatement()) {
            System.out.println("text " + first(s.executeQuery("SHOW SEQPROXY VERSION")).getString("version"));
            try (PreparedStatement p = c.prepareStatement("SHOW SEQPROXY VERSION")) {
                System.out.println("again " + first(p.executeQuery()).getString("version"));
            }
            try (PreparedStatement p = c.prepareStatement("SHOW SEQPROXY STATUS LIKE 'drain%'")) {
                ResultSet r = first(p.executeQuery());
                System.out.println("status " + r.getString("name") + " " + r.getDouble("value"));
            }
            System.out.println("session " + first(s.executeQuery("SHOW SEQPROXY SESSIONS")).getString("user"));
            // What pools do with a connection.
            c.setReadOnly(true);
            c.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
            if (!c.isReadOnly() || c.getTransactionIsolation() != Connection.TRANSACTION_READ_COMMITTED || c.getMetaData().getDatabaseProductVersion().isEmpty()) {
                throw new SQLException("not as it was set");
            }
            c.setReadOnly(false);
            c.setAutoCommit(false);
            c.commit();
            c.setAutoCommit(true);
            System.out.println("schema " + c.getCatalog());
            if (!c.isValid(10)) {
                throw new SQLException("not valid");
            }
        }
    }

    static ResultSet first(ResultSet r) throws SQLException {
        r.next();
        return r;
    }
}
