// Sequelize over mysql2: sequelize.mjs HOST PORT USER PASSWORD SCHEMA PHASE..., where a phase is migrate or use.
import { DataTypes, Sequelize } from 'sequelize';
import { version } from './transcript.mjs';

const [host, port, user, password, schema, ...phases] = process.argv.slice(2);
const db = new Sequelize(schema, user, password, {
  host, port: Number(port), dialect: 'mysql', logging: false, pool: { max: 2 }, define: { timestamps: false, underscored: true },
});
const key = { type: DataTypes.BIGINT.UNSIGNED, primaryKey: true, autoIncrement: true };
const Album = db.define('Album', { id: key, name: { type: DataTypes.STRING(50), unique: true } }, { tableName: 'albums' });
const Picture = db.define('Picture', { id: key, title: DataTypes.STRING(50) }, { tableName: 'pictures' });
const Tag = db.define('Tag', { id: key, name: DataTypes.STRING(50) }, { tableName: 'tags' });
Album.hasMany(Picture, { as: 'pictures' });
Picture.belongsTo(Album);
Picture.belongsToMany(Tag, { through: 'pictures_tags', as: 'tags' });
Tag.belongsToMany(Picture, { through: 'pictures_tags' });

const plain = (v) => (Array.isArray(v) ? v.map(plain) : v === null || v === undefined ? null : String(v));

// What Sequelize takes the rows for, and what they are.
async function step(name, told, ...queries) {
  const rows = [];
  for (const q of queries) rows.push(...(await db.query(q))[0].map(Object.values));
  console.log(JSON.stringify({ step: name, value: plain([told, rows]) }));
}

const albums = (...names) => `SELECT id, name FROM albums WHERE name IN ('${names.join("', '")}') ORDER BY id`;
const pictures = (where) => `SELECT id, title, album_id FROM pictures WHERE ${where} ORDER BY id`;
const seen = (objects) => objects.map((o) => (o instanceof Picture ? [o.id, o.title, o.AlbumId ?? o.albumId] : [o.id, o.name]));

async function use() {
  const one = await Album.create({ name: 'one' });
  await step('one', seen([one]), albums('one'));
  await step('several', seen(await Album.bulkCreate([{ name: 'a' }, { name: 'b' }, { name: 'c' }])), albums('a', 'b', 'c'));

  // The related rows go along with the first.
  const holiday = await Album.create({ name: 'holiday', pictures: [{ title: 'beach' }] }, { include: 'pictures' });
  const [beach] = holiday.pictures;
  const hill = await holiday.createPicture({ title: 'hill' });
  await step('relation', seen([holiday, beach, hill]), albums('holiday'), pictures("title IN ('beach', 'hill')"));

  const tags = await Tag.bulkCreate([{ name: 'blue' }, { name: 'green' }]);
  await beach.setTags(tags);
  await hill.addTag(tags[1]);
  const pairs = [[beach, tags[0]], [beach, tags[1]], [hill, tags[1]]].map(([p, t]) => [p.id, t.id]);
  await step('many to many', [...seen(tags), ...pairs],
    'SELECT id, name FROM tags ORDER BY id', 'SELECT picture_id, tag_id FROM pictures_tags ORDER BY picture_id, tag_id');

  const many = await Picture.bulkCreate(Array.from({ length: 250 }, (_, n) => ({ title: `p${n}`, AlbumId: one.id })));
  await step('batches', seen(many), pictures("title LIKE 'p%'"));

  const given = await Album.create({ id: 500000, name: 'given' });
  const behind = await Album.create({ name: 'behind it' });
  await step('explicit', seen([given, behind]), albums('given', 'behind it'));

  await db.transaction(async (transaction) => {
    await Album.create({ name: 'undone' }, { transaction });
    throw new Error('undo');
  }).catch((e) => { if (e.message !== 'undo') throw e; });
  await step('undone', seen([await Album.create({ name: 'after' })]), albums('undone', 'after'));

  const [found] = await Album.findOrCreate({ where: { name: 'found' } });
  const [again] = await Album.findOrCreate({ where: { name: 'found' } });
  await step('found or made', seen([found]), albums('found'));
  await step('found again', seen([again]), albums('found'));

  await Album.bulkCreate([{ name: 'found' }, { name: 'new' }], { ignoreDuplicates: true });
  await Album.upsert({ name: 'found' });
  const both = await Album.findAll({ where: { name: ['found', 'new'] }, order: ['id'] });
  await step('duplicates ignored', seen(both), albums('found', 'new'));
}

for (const phase of phases) {
  if (phase === 'migrate') {
    await db.sync();
    console.log(JSON.stringify({ step: 'client', value: version('sequelize') }));
  } else {
    await use();
  }
}
await db.close();
