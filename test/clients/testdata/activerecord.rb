# Rails' ActiveRecord: activerecord.rb HOST PORT USER PASSWORD SCHEMA PHASE..., where a phase is migrate or use.
require 'active_record'
require 'json'

host, port, user, password, schema, *phases = ARGV
ActiveRecord::Base.establish_connection(adapter: 'mysql2', host: host, port: port.to_i, username: user, password: password,
                                        database: schema, encoding: 'utf8mb4', prepared_statements: true)
ActiveRecord::Migration.verbose = false

class CreateGallery < ActiveRecord::Migration[6.1]
  def change
    create_table(:albums) { |t| t.string :name, limit: 50, index: { unique: true } }
    create_table(:tags) { |t| t.string :name, limit: 50 }
    create_table :pictures do |t|
      t.string :title, limit: 50
      t.references :album, foreign_key: true
    end
    create_join_table :pictures, :tags
  end
end

class Album < ActiveRecord::Base
  has_many :pictures
end

class Picture < ActiveRecord::Base
  belongs_to :album
  has_and_belongs_to_many :tags
end

class Tag < ActiveRecord::Base
  has_and_belongs_to_many :pictures
end

def plain(v)
  v.is_a?(Array) ? v.map { |x| plain(x) } : v&.to_s
end

# What ActiveRecord takes the rows for, and what they are.
def step(name, told, *queries)
  rows = queries.flat_map { |q| ActiveRecord::Base.connection.select_rows(q) }
  puts JSON.generate(step: name, value: plain([told, rows]))
end

def albums(*names)
  "SELECT id, name FROM albums WHERE name IN ('#{names.join("', '")}') ORDER BY id"
end

def pictures(where)
  "SELECT id, title, album_id FROM pictures WHERE #{where} ORDER BY id"
end

def seen(*objects)
  objects.map { |o| o.is_a?(Picture) ? [o.id, o.title, o.album_id] : [o.id, o.name] }
end

def use
  one = Album.create!(name: 'one')
  step('one', seen(one), albums('one'))
  step('several', seen(*Album.create!([{ name: 'a' }, { name: 'b' }, { name: 'c' }])), albums('a', 'b', 'c'))

  holiday = Album.create!(name: 'holiday', pictures: [Picture.new(title: 'beach')])
  beach = holiday.pictures.first
  hill = holiday.pictures.create!(title: 'hill')
  step('relation', seen(holiday, beach, hill), albums('holiday'), pictures("title IN ('beach', 'hill')"))

  tags = [Tag.new(name: 'blue'), Tag.new(name: 'green')]
  beach.tags = tags
  hill.tags << tags[1]
  step('many to many', seen(*tags) + [[beach, tags[0]], [beach, tags[1]], [hill, tags[1]]].map { |p, t| [p.id, t.id] },
       'SELECT id, name FROM tags ORDER BY id', 'SELECT picture_id, tag_id FROM pictures_tags ORDER BY picture_id, tag_id')

  # The statement of many rows gives no keys back.
  Picture.insert_all!((0...250).map { |n| { title: "p#{n}", album_id: one.id } })
  step('batches', seen(*Picture.where("title LIKE 'p%'").order(:id)), pictures("title LIKE 'p%'"))

  given = Album.create!(id: 500_000, name: 'given')
  behind = Album.create!(name: 'behind it')
  step('explicit', seen(given, behind), albums('given', 'behind it'))

  Album.transaction do
    Album.create!(name: 'undone')
    raise ActiveRecord::Rollback
  end
  step('undone', seen(Album.create!(name: 'after')), albums('undone', 'after'))

  found = Album.create_or_find_by!(name: 'found')
  step('found or made', seen(found), albums('found'))
  step('found again', seen(Album.create_or_find_by!(name: 'found'), Album.find_or_create_by!(name: 'found')), albums('found'), albums('found'))

  Album.insert_all([{ name: 'found' }, { name: 'new' }])
  Album.upsert_all([{ name: 'found' }, { name: 'newer' }])
  step('duplicates ignored', seen(*Album.where(name: %w[found new newer]).order(:id)), albums('found', 'new', 'newer'))
end

phases.each do |phase|
  if phase == 'migrate'
    CreateGallery.migrate(:up)
    puts JSON.generate(step: 'client', value: "ActiveRecord #{ActiveRecord.version}")
  else
    use
  end
end
