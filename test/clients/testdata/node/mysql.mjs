// npm mysql, which has no prepared statements
import { promisify } from 'node:util';
import mysql from 'mysql';
import { run } from './transcript.mjs';

await run('mysql', async (options) => {
  const c = mysql.createConnection({ ...options, charset: 'utf8mb4_general_ci', supportBigNumbers: true, bigNumberStrings: true });
  await promisify(c.connect.bind(c))();
  const query = promisify(c.query.bind(c));
  const write = async (sql, values) => {
    const r = await query(sql, values);
    return { id: r.insertId, affected: r.affectedRows };
  };
  const columns = (sql) => new Promise((resolve, reject) => {
    c.query(sql, (e, _, fields) => (e ? reject(e) : resolve(fields.map((f) => [f.name, f.type, f.length, f.flags, f.decimals, f.charsetNr]))));
  });
  // Rows are objects here; no two columns have one name.
  const arrays = (r) => (Array.isArray(r) ? r.map((row) => Object.values(row)) : [r.affectedRows]);
  return {
    rows: async (sql) => arrays(await query(sql)),
    results: async (sql) => (await query(sql)).map(arrays),
    columns,
    write,
    load: write,
    close: promisify(c.end.bind(c)),
    serverVersion: undefined,
  };
});
