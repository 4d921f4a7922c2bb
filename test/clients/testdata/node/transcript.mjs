// What the three drivers for Node.js share. Each brings its own way to connect and to ask:
// node DRIVER.mjs HOST PORT USER PASSWORD SCHEMA
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

const [host, port, user, password, database] = process.argv.slice(2);
const { LOGIN: login, SESSION: session, BIG: big, INFILE: infile, SEQUENCE: sequence } = process.env;

// A value as the transcript shows it.
function plain(v) {
  if (v === null || v === undefined) return null;
  if (Buffer.isBuffer(v)) return v.toString('hex');
  if (v instanceof Date) return Number.isNaN(v.getTime()) ? 'no date' : v.toISOString();
  if (Array.isArray(v)) return v.map(plain);
  return typeof v === 'object' ? JSON.stringify(v, (_, x) => (typeof x === 'bigint' ? String(x) : x)) : String(v);
}

const step = (name, value) => console.log(JSON.stringify({ step: name, value: plain(value) }));
const sha256 = (b) => createHash('sha256').update(b).digest('hex');

async function refused(promise) {
  try {
    await promise;
  } catch (e) {
    // Two of the drivers add words of their own to the server's text.
    return [e.errno, e.sqlState, e.sqlMessage ?? e.message];
  }
  return ['no error', null, null];
}

export function version(name) {
  const file = new URL(`./node_modules/${name}/package.json`, import.meta.url);
  return `${name} ${JSON.parse(readFileSync(file)).version}`;
}

// run makes the transcript. connect(options) gives a connection with
//   rows(sql)              rows as arrays
//   results(sql)           several results, each rows or [affected rows]
//   columns(sql)           what the driver tells of the columns
//   write(sql, values)     {id, affected} of a text statement
//   execute(sql, values)   rows of a statement that the server prepares, or undefined where the driver has none
//   executeWrite(sql, values)
//   load(sql, file)        {affected}
//   batch(sql, values)     {affected} of many executions at once, where the driver has that
//   reset()                the session as it was after the login, where the driver has that
//   close(), serverVersion
export async function run(name, connect) {
  const options = {
    host, port: Number(port), user, database, charset: 'utf8mb4', multipleStatements: true,
    ...(login === 'tls' && { ssl: { rejectUnauthorized: false } }),
    ...(login === 'compress' && { compress: true }),
  };
  step('client', version(name));
  const c = await connect({ ...options, password });
  const one = async (sql) => (await c.rows(sql))[0][0];
  const prepared = c.execute !== undefined;
  step('connect', c.serverVersion ?? (await one('SELECT VERSION()')));
  step('session', await c.rows(session));

  step('types', [await c.columns('SELECT * FROM types'), await c.rows('SELECT * FROM types ORDER BY id')]);
  step('text', [
    (await c.write('UPDATE types SET i = i + ? WHERE id = ?', [1, 1])).affected,
    await c.rows('SELECT i FROM types'), await c.rows("SELECT 'it''s', 'größe 🌊'"),
  ]);

  const question = 'SELECT ? + 1, ?, HEX(?), ? IS NULL';
  if (prepared) {
    step('prepared', [
      await c.execute(question, [41, 'größe 🌊', Buffer.from("\0\xff'", 'latin1'), null]),
      await c.execute(question, [-1, '', '', 0]),
      await c.execute('SELECT * FROM types ORDER BY id', []),
    ]);
  } else {
    await c.write(`PREPARE s FROM '${question}'`);
    await c.write("SET @n = 41, @s = 'größe 🌊', @b = x'00ff27', @null = NULL");
    const first = await c.rows('EXECUTE s USING @n, @s, @b, @null');
    await c.write("SET @n = -1, @s = ''");
    step('prepared', [first, await c.rows('EXECUTE s USING @n, @s, @s, @n')]);
  }

  const insert = prepared ? c.executeWrite : c.write;
  step('insert id', [
    (await c.write("INSERT INTO photos (title) VALUES ('sea')")).id,
    (await insert('INSERT INTO photos (title) VALUES (?)', ['hill'])).id,
    (await c.write("INSERT INTO photos (title) VALUES ('a'), ('b'), ('c')")).id,
  ]);

  const counts = [await one('SELECT COUNT(*) FROM photos')];
  for (const [title, end] of [['gone', 'ROLLBACK'], ['kept', 'COMMIT']]) {
    await c.write('START TRANSACTION');
    await insert('INSERT INTO photos (title) VALUES (?)', [title]);
    await c.write(end);
    counts.push(await one('SELECT COUNT(*) FROM photos'));
  }
  step('transaction', counts);

  const value = Buffer.alloc(Number(big), '0123456789abcde\0');
  await insert('INSERT INTO big VALUES (1, ?)', [value]);
  const back = await one('SELECT data FROM big');
  step('big', [...(await c.rows('SELECT LENGTH(data), SHA2(data, 256) FROM big'))[0], back.length, sha256(back)]);

  const errors = [];
  for (const sql of ["INSERT INTO photos (title) VALUES ('sea')", 'SELECT * FROM nothing', 'SELEKT 1']) {
    errors.push(await refused(c.write(sql)));
  }
  step('error', errors);
  step('after', await c.rows('SELECT 1'));
  step('results', [await c.results('CALL two(7, @twice)'), await c.rows('SELECT @twice'), await c.results("SELECT 1; DO 1; SELECT 'two'")]);

  const loaded = await c.load(`LOAD DATA LOCAL INFILE '${infile}' INTO TABLE words`, infile);
  step('infile', [loaded.affected, await c.rows('SELECT COUNT(*), SUM(n), MIN(word) FROM words')]);

  if (c.batch) {
    const titles = Array.from({ length: 300 }, (_, n) => [`batch ${n}`]);
    const done = await c.batch('INSERT INTO photos (title) VALUES (?)', titles);
    step('batch', [done.affected, await c.rows('SELECT COUNT(*) FROM photos')]);
  }
  if (c.reset) {
    await c.write('SET @left = 1');
    await c.reset();
    step('reset', await c.rows('SELECT @left, DATABASE(), @@character_set_client'));
  }

  // Sent in one go, before the first answer.
  step('pipeline', await Promise.all([1, 2, 3, 4, 5].map((n) => one(`SELECT ${n}`))));

  if (sequence) {
    for (const [name, put] of [['nextval', c.write], ...(prepared ? [['nextval prepared', c.executeWrite]] : [])]) {
      const { id } = await put(`INSERT INTO keyed VALUES (NEXTVAL('${sequence}'), ?)`, [login]);
      step(name, [id, await one('SELECT LAST_INSERT_ID()'), await one('SELECT MAX(id) FROM keyed')]);
    }
  }
  await c.close();
  step('refused', await refused(connect({ ...options, password: 'wrong' })));
}
