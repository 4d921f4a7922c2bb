// npm mariadb
import mariadb from 'mariadb';
import { run } from './transcript.mjs';

await run('mariadb', async (options) => {
  const c = await mariadb.createConnection({
    ...options, charset: undefined, permitLocalInfile: true, allowPublicKeyRetrieval: true, maxAllowedPacket: 64 << 20,
    connectTimeout: 20_000, // the default is one second, which a busy machine may take
  });
  const write = (r) => ({ id: r.insertId, affected: r.affectedRows });
  const rows = (sql) => c.query({ sql, rowsAsArray: true });
  return {
    rows,
    results: async (sql) => (await rows(sql)).map((r) => (Array.isArray(r) ? [...r] : [r.affectedRows])),
    columns: async (sql) => (await c.query(sql)).meta.map((f) => [f.name(), f.type, f.columnLength, f.flags, f.scale, f.collation?.name]),
    write: async (sql, values) => write(await c.query(sql, values)),
    execute: (sql, values) => c.execute({ sql, rowsAsArray: true }, values),
    executeWrite: async (sql, values) => write(await c.execute(sql, values)),
    load: async (sql) => write(await c.query(sql)),
    batch: async (sql, values) => write(await c.batch(sql, values)),
    reset: () => c.reset(),
    close: () => c.end(),
    serverVersion: c.serverVersion(),
  };
});
