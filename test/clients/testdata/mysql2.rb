# Ruby's mysql2: mysql2.rb HOST PORT USER PASSWORD SCHEMA
require 'digest'
require 'json'
require 'mysql2'

$host, $port, $user, password, $schema = ARGV
$login = ENV['LOGIN']
$stdout.sync = true

# A value as the transcript shows it.
def plain(v)
  case v
  when nil then nil
  when Array then v.map { |x| plain(x) }
  when Hash then v.values.map { |x| plain(x) }
  when String then v.encoding == Encoding::BINARY ? v.unpack1('H*') : v
  when BigDecimal then v.to_s('F')
  when Time then v.strftime('%F %T.%6N')
  else v.to_s
  end
end

def step(name, value)
  puts JSON.generate({ step: name, value: plain(value) })
end

def connect(password)
  flags = Mysql2::Client::MULTI_STATEMENTS
  flags |= Mysql2::Client::COMPRESS if $login == 'compress'
  more = $login == 'tls' ? { sslca: ENV['CA'], sslverify: false } : {}
  Mysql2::Client.new(host: $host, port: $port.to_i, username: $user, password: password, database: $schema,
                     encoding: 'utf8mb4', local_infile: true, flags: flags, **more)
end

def refused
  yield
  ['no error', nil, nil]
rescue Mysql2::Error => e
  [e.error_number, e.sql_state, e.message]
end

step('client', "mysql2 #{Mysql2::VERSION}, #{Mysql2::Client.info[:version]}")
$c = connect(password)
step('connect', [$c.server_info[:version], $c.server_info[:id]])

def rows(sql)
  $c.query(sql, as: :array).to_a
end
step('session', rows(ENV['SESSION']))

r = $c.query('SELECT * FROM types ORDER BY id', as: :array)
step('types', [r.fields, r.to_a])
$c.query('UPDATE types SET i = i + 1 WHERE id = 1')
step('text', [$c.affected_rows, $c.query_info.to_a, rows('SELECT i FROM types'), rows("SELECT 'it''s', 'größe 🌊'")])

s = $c.prepare('SELECT ? + 1, ?, HEX(?), ? IS NULL')
first = s.execute(41, 'größe 🌊', "\x00\xff'".b, nil, as: :array).to_a
second = s.execute(-1, '', '', 0, as: :array).to_a
step('prepared', [first, second, $c.prepare('SELECT * FROM types ORDER BY id').execute(as: :array).to_a])

$c.query("INSERT INTO photos (title) VALUES ('sea')")
ids = [$c.last_id]
insert = $c.prepare('INSERT INTO photos (title) VALUES (?)')
insert.execute('hill')
ids << insert.last_id
$c.query("INSERT INTO photos (title) VALUES ('a'), ('b'), ('c')")
ids << $c.last_id
step('insert id', ids)

count = -> { rows('SELECT COUNT(*) FROM photos')[0][0] }
counts = [count.call]
$c.query('BEGIN')
insert.execute('gone')
$c.query('ROLLBACK')
counts << count.call
$c.query('BEGIN')
insert.execute('kept')
$c.query('COMMIT')
counts << count.call
step('transaction', counts)

size = ENV['BIG'].to_i
big = ("0123456789abcde\x00".b * (size / 16 + 1))[0, size]
$c.prepare('INSERT INTO big VALUES (1, ?)').execute(big)
back = rows('SELECT data FROM big')[0][0]
step('big', [*rows('SELECT LENGTH(data), SHA2(data, 256) FROM big')[0], back.bytesize, Digest::SHA256.hexdigest(back)])

step('error', ["INSERT INTO photos (title) VALUES ('sea')", 'SELECT * FROM nothing', 'SELEKT 1'].map do |sql|
  refused { $c.query(sql) }
end)
step('after', rows('SELECT 1'))

def results(sql)
  all = [rows(sql)]
  while $c.next_result
    r = $c.store_result
    all << (r ? r.map { |row| row } : $c.affected_rows)
  end
  all
end
step('results', [results('CALL two(7, @twice)'), rows('SELECT @twice'), results("SELECT 1; DO 1; SELECT 'two'")])

$c.query("LOAD DATA LOCAL INFILE '#{ENV['INFILE']}' INTO TABLE words")
loaded = [$c.affected_rows, rows('SELECT COUNT(*), SUM(n), MIN(word) FROM words')]
missing = refused { $c.query("LOAD DATA LOCAL INFILE '/none/file' INTO TABLE words") }
step('infile', [loaded, missing[0] != 'no error', rows('SELECT COUNT(*) FROM words')])

unless ENV['SEQUENCE'].empty?
  insert = "INSERT INTO keyed VALUES (NEXTVAL('#{ENV['SEQUENCE']}'), "
  $c.query("#{insert}'#{$login}')")
  step('nextval', [$c.last_id, rows('SELECT LAST_INSERT_ID()')[0][0], rows('SELECT MAX(id) FROM keyed')[0][0]])
  s = $c.prepare("#{insert}?)")
  s.execute($login)
  step('nextval prepared', [s.last_id, rows('SELECT LAST_INSERT_ID()')[0][0], rows('SELECT MAX(id) FROM keyed')[0][0]])
end
$c.close
step('refused', refused { connect('wrong') })
