// A pool of an npm module whose server goes away: lost.mjs MODULE HOST PORT USER PASSWORD SCHEMA
const [module, host, port, user, password, database] = process.argv.slice(2);
const { default: driver } = await import(module === 'mysql2' ? 'mysql2/promise' : module);
const options = { host, port: Number(port), user, password, database, connectionLimit: 2, multipleStatements: true };
if (module === 'mariadb') Object.assign(options, { allowPublicKeyRetrieval: true, acquireTimeout: 2000 });
const pool = driver.createPool(options);
const rows = (answer) => (module === 'mysql2' ? answer[0] : answer);
const lost = async (run) => {
  try {
    await run();
    return 'nothing';
  } catch (e) {
    return `${e.code} ${e.errno > 0 && e.errno} ${e.fatal}`;
  }
};
const both = async () => {
  const [c, d] = [await pool.getConnection(), await pool.getConnection()];
  try {
    return rows(await c.query('SELECT 1 AS n'))[0].n + rows(await d.query('SELECT 2 AS n'))[0].n;
  } finally {
    c.release();
    d.release();
  }
};
console.log('busy', await lost(() => pool.query('SELECT SLEEP(100)')));
for (let i = 0; i < 600; i++) {
  try {
    console.log('again', Number(await both()));
    break;
  } catch {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
// One of the pool ends another, as mysql2's own tests do.
const c = await pool.getConnection();
const d = await pool.getConnection();
const gone = new Promise((resolve) => { c.once('error', resolve); });
console.log('kill', Number(rows(await d.query('KILL ?; SELECT 1 AS n', [c.threadId]))[1][0].n));
d.release();
await gone;
console.log('killed');
c.destroy();
console.log('again', Number(await both()));
await pool.end();
