// The keys that mysql2 and mariadb tell: kinds.mjs DRIVER HOST PORT USER PASSWORD SCHEMA STEP...
// A step has fields between tabs: its name, how the statement is run, the statement, and values.
const [driver, host, port, user, password, database, ...steps] = process.argv.slice(2);
const options = { host, port: Number(port), user, password, database };

const drivers = {
  async mysql2() {
    const c = await (await import('mysql2/promise')).default.createConnection({ ...options, supportBigNumbers: true, bigNumberStrings: true });
    return {
      text: async (sql) => [(await c.query(sql))[0].insertId],
      prepared: async (sql, values) => [(await c.execute(sql, values))[0].insertId],
      rows: async (sql) => (await c.query({ sql, rowsAsArray: true }))[0].map((r) => r[0]),
      close: () => c.end(),
    };
  },
  async mariadb() {
    const c = await (await import('mariadb')).default.createConnection({ ...options, allowPublicKeyRetrieval: true });
    return {
      text: async (sql) => [(await c.query(sql)).insertId],
      prepared: async (sql, values) => [(await c.execute(sql, values)).insertId],
      rows: async (sql) => (await c.query({ sql, rowsAsArray: true })).map((r) => r[0]),
      batch: async (sql, values) => [[(await c.batch(sql, values.map((v) => [v])))].flat()[0].insertId],
      close: () => c.end(),
    };
  },
};
const c = await drivers[driver]();

for (const step of steps) {
  const [name, how, sql, ...values] = step.split('\t');
  if (!c[how]) continue;
  let told;
  try {
    told = (await c[how](sql, values)).map(String);
  } catch (e) {
    told = String(e.errno);
  }
  console.log(JSON.stringify({ step: name, value: told }));
}
await c.close();
