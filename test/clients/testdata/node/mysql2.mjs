// npm mysql2
import { createReadStream } from 'node:fs';
import mysql from 'mysql2/promise';
import { run } from './transcript.mjs';

await run('mysql2', async (options) => {
  const c = await mysql.createConnection({
    ...options, dateStrings: false, supportBigNumbers: true, bigNumberStrings: true,
    infileStreamFactory: (path) => createReadStream(path),
  });
  const write = ([r]) => ({ id: r.insertId, affected: r.affectedRows });
  const rows = async (sql) => (await c.query({ sql, rowsAsArray: true }))[0];
  return {
    rows,
    results: async (sql) => (await rows(sql)).map((r) => (Array.isArray(r) ? r : [r.affectedRows])),
    columns: async (sql) => (await c.query(sql))[1].map((f) => [f.name, f.columnType, f.columnLength, f.flags, f.decimals, f.characterSet]),
    write: async (sql, values) => write(await c.query(sql, values)),
    execute: async (sql, values) => (await c.execute({ sql, rowsAsArray: true }, values))[0],
    executeWrite: async (sql, values) => write(await c.execute(sql, values)),
    load: async (sql) => write(await c.query(sql)),
    reset: () => c.changeUser({ user: options.user, password: options.password, database: options.database }),
    close: () => c.end(),
  };
});
