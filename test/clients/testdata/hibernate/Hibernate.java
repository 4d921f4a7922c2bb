// Hibernate: Hibernate HOST PORT USER PASSWORD SCHEMA makes tables and sequences, validates them, and
// makes ids by its pooled optimizers. With a TITLE behind it makes ids alone, beside others.
import java.util.*;
import javax.persistence.*;
import org.hibernate.HibernateException;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.annotations.GenericGenerator;
import org.hibernate.annotations.Parameter;
import org.hibernate.annotations.Proxy;
import org.hibernate.cfg.Configuration;
import org.hibernate.dialect.MySQL5InnoDBDialect;
import org.hibernate.tool.hbm2ddl.SchemaExport;
import org.hibernate.tool.hbm2ddl.SchemaValidator;

public class Hibernate {
    // The statements are those of MariaDB103Dialect, which this version has not yet.
    public static class WithSequences extends MySQL5InnoDBDialect {
        public boolean supportsSequences() { return true; }
        public boolean supportsPooledSequences() { return true; }
        public String getCreateSequenceString(String name) { return "create sequence " + name; }
        public String getDropSequenceString(String name) { return "drop sequence if exists " + name; }
        public String getSequenceNextValString(String name) { return "select nextval(" + name + ")"; }
        public String getSelectSequenceNextValString(String name) { return "nextval(" + name + ")"; }
        public String getQuerySequencesString() {
            return "select table_name from information_schema.TABLES where table_schema = database() and table_type = 'SEQUENCE'";
        }
    }

    @Entity(name = "pooled")
    @Proxy(lazy = false)
    public static class Pooled {
        @Id
        @GeneratedValue(generator = "pooled")
        @GenericGenerator(name = "pooled", strategy = "org.hibernate.id.enhanced.SequenceStyleGenerator", parameters = {
            @Parameter(name = "sequence_name", value = "pooled_seq"), @Parameter(name = "increment_size", value = "50"),
            @Parameter(name = "optimizer", value = "pooled")})
        public Long id;
        public String title;
    }

    @Entity(name = "low")
    @Proxy(lazy = false)
    public static class Low {
        @Id
        @GeneratedValue(generator = "low")
        @GenericGenerator(name = "low", strategy = "org.hibernate.id.enhanced.SequenceStyleGenerator", parameters = {
            @Parameter(name = "sequence_name", value = "low_seq"), @Parameter(name = "increment_size", value = "50"),
            @Parameter(name = "optimizer", value = "pooled-lo")})
        public Long id;
        public String title;
    }

    @Entity(name = "single")
    @Proxy(lazy = false)
    public static class Single {
        @Id
        @GeneratedValue(generator = "single")
        @GenericGenerator(name = "single", strategy = "org.hibernate.id.enhanced.SequenceStyleGenerator", parameters = {
            @Parameter(name = "sequence_name", value = "single_seq"), @Parameter(name = "increment_size", value = "1")})
        public Long id;
        public String title;
    }

    public static void main(String[] args) throws Exception {
        Configuration c = new Configuration().addAnnotatedClass(Pooled.class).addAnnotatedClass(Low.class).addAnnotatedClass(Single.class)
            .setProperty("hibernate.dialect", WithSequences.class.getName())
            .setProperty("hibernate.connection.driver_class", "org.mariadb.jdbc.Driver")
            .setProperty("hibernate.connection.url", "jdbc:mariadb://" + args[0] + ":" + args[1] + "/" + args[4] + "?allowPublicKeyRetrieval=true")
            .setProperty("hibernate.connection.username", args[2])
            .setProperty("hibernate.connection.password", args[3])
            .setProperty("hibernate.connection.autocommit", "false");
        if (args.length > 5) {
            write(c, args[5], 200);
            return;
        }
        try {
            new SchemaValidator(c).validate();
            step("before", "valid");
        } catch (HibernateException e) {
            step("before", e.getMessage().replaceAll(args[4] + "\\.", ""));
        }
        SchemaExport schema = new SchemaExport(c);
        schema.create(false, true);
        step("made", schema.getExceptions().toString());
        new SchemaValidator(c).validate();
        step("valid", "yes");
        for (int round = 0; round < 2; round++) { // the second begins with another number of the sequence
            write(c, "round" + round, 120);
        }
        schema.drop(false, true);
        step("dropped", schema.getExceptions().toString());
        schema.create(false, true);
        step("made again", schema.getExceptions().toString());
    }

    // write makes rows, and says their ids and whether the rows have these.
    static void write(Configuration c, String title, int rows) {
        SessionFactory factory = c.buildSessionFactory();
        Session s = factory.openSession();
        s.beginTransaction();
        List<String> pooled = new ArrayList<String>(), low = new ArrayList<String>();
        for (int i = 0; i < rows; i++) {
            Pooled p = new Pooled();
            p.title = title + "-" + i;
            s.save(p);
            pooled.add(p.title + "=" + p.id);
            Low l = new Low();
            l.title = title + "-" + i;
            s.save(l);
            low.add(l.title + "=" + l.id);
            if (i < 3) {
                Single one = new Single();
                one.title = title;
                s.save(one);
            }
        }
        s.getTransaction().commit();
        List<String> stored = new ArrayList<String>();
        for (Object row : s.createQuery("from pooled where title like '" + title + "-%' order by id").list()) {
            stored.add(((Pooled) row).title + "=" + ((Pooled) row).id);
        }
        step("pooled " + title, pooled + " " + pooled.equals(stored));
        stored.clear();
        for (Object row : s.createQuery("from low where title like '" + title + "-%' order by id").list()) {
            stored.add(((Low) row).title + "=" + ((Low) row).id);
        }
        step("low " + title, low + " " + low.equals(stored));
        step("single " + title, s.createQuery("select id from single where title = '" + title + "' order by id").list().toString());
        s.close();
        factory.close();
    }

    static void step(String name, String value) {
        System.out.println("{\"step\":\"" + name + "\",\"value\":\"" + value + "\"}");
    }
}
