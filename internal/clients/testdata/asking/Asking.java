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
            DatabaseMetaData m = c.getMetaData();
            ResultSet[] all = {
                m.getCatalogs(), m.getSchemas(), m.getTables("gallery", null, "%", null), m.getColumns("gallery", null, "photos", "%"),
                m.getPrimaryKeys("gallery", null, "photos"), m.getIndexInfo("gallery", null, "photos", false, true), m.getProcedures("gallery", null, "%"),
                m.getProcedureColumns("gallery", null, "%", "%"), m.getFunctions("gallery", null, "%"), m.getTablePrivileges("gallery", null, "%"),
                m.getColumnPrivileges("gallery", null, "photos", "%"), m.getExportedKeys("gallery", null, "photos"),
                m.getFunctionColumns("gallery", null, "%", "%"), m.getImportedKeys("gallery", null, "photos"), m.getUDTs("gallery", null, "%", null),
                m.getBestRowIdentifier("gallery", null, "photos", 0, true), m.getVersionColumns("gallery", null, "photos"), m.getSuperTables("gallery", null, "%"),
            };
            int rows = 0;
            for (ResultSet r : all) {
                while (r.next()) {
                    rows++;
                }
            }
            if (!m.getTableTypes().next()) {
                throw new SQLException("no types of tables");
            }
            System.out.println("browsed " + rows + " " + c.getCatalog());
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
