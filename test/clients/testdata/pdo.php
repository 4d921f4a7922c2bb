<?php
// PHP's PDO, with statements that the server prepares: pdo.php HOST PORT USER PASSWORD SCHEMA
[, $host, $port, $user, $password, $schema] = $argv;
ini_set('memory_limit', '512M');
$login = getenv('LOGIN');

function step(string $name, $value): void
{
    array_walk_recursive($value, function (&$v) { $v = is_null($v) ? null : (preg_match('//u', $v) ? (string) $v : bin2hex($v)); });
    echo json_encode(['step' => $name, 'value' => $value], JSON_THROW_ON_ERROR), "\n";
}

function connect(string $password): PDO
{
    global $host, $port, $user, $schema, $login;
    $options = [PDO::ATTR_EMULATE_PREPARES => false, PDO::MYSQL_ATTR_LOCAL_INFILE => true, PDO::MYSQL_ATTR_FOUND_ROWS => true];
    if ($login === 'tls') {
        $options += [PDO::MYSQL_ATTR_SSL_CA => getenv('CA'), PDO::MYSQL_ATTR_SSL_VERIFY_SERVER_CERT => false];
    }
    if ($login === 'compress') {
        $options += [PDO::MYSQL_ATTR_COMPRESS => true];
    }
    return new PDO("mysql:host=$host;port=$port;dbname=$schema;charset=utf8mb4", $user, $password, $options);
}

function refused(callable $f): array
{
    try {
        $f();
    } catch (PDOException $e) {
        return [$e->errorInfo[1], $e->errorInfo[0], $e->errorInfo[2]];
    }
    return ['no error', null, null];
}

step('client', ['PDO ' . phpversion('pdo_mysql')]);
$c = connect($password);
step('connect', [$c->getAttribute(PDO::ATTR_SERVER_VERSION)]);
$rows = fn (string $sql) => $c->query($sql)->fetchAll(PDO::FETCH_NUM);
step('session', $rows(getenv('SESSION')));

$r = $c->query('SELECT * FROM types ORDER BY id');
$columns = array_map(fn ($i) => $r->getColumnMeta($i), range(0, $r->columnCount() - 1));
step('types', [$columns, $r->fetchAll(PDO::FETCH_NUM)]);
step('text', [$c->exec('UPDATE types SET i = i + 1 WHERE id = 1'), $rows('SELECT i FROM types'), $rows("SELECT 'it''s', 'größe 🌊'")]);

$s = $c->prepare('SELECT ? + 1, ?, HEX(?), ? IS NULL');
$s->execute([41, 'größe 🌊', "\x00\xff'", null]);
$first = $s->fetchAll(PDO::FETCH_NUM);
$s->execute([-1, '', '', 0]);
step('prepared', [$first, $s->fetchAll(PDO::FETCH_NUM)]);

$c->exec("INSERT INTO photos (title) VALUES ('sea')");
$ids = [$c->lastInsertId()];
$s = $c->prepare('INSERT INTO photos (title) VALUES (?)');
$s->execute(['hill']);
$ids[] = $c->lastInsertId();
$c->exec("INSERT INTO photos (title) VALUES ('a'), ('b'), ('c')");
$ids[] = $c->lastInsertId();
step('insert id', $ids);

$count = fn () => $rows('SELECT COUNT(*) FROM photos')[0][0];
$counts = [$count()];
$c->beginTransaction();
$s->execute(['gone']);
$c->rollBack();
$counts[] = $count();
$c->beginTransaction();
$s->execute(['kept']);
$c->commit();
$counts[] = $count();
step('transaction', $counts);

$size = (int) getenv('BIG');
$big = substr(str_repeat("0123456789abcde\x00", intdiv($size, 16) + 1), 0, $size);
$s = $c->prepare('INSERT INTO big VALUES (1, ?)');
$s->bindParam(1, $big, PDO::PARAM_LOB);
$s->execute();
[$there] = $rows('SELECT LENGTH(data), SHA2(data, 256) FROM big');
$back = $rows('SELECT data FROM big')[0][0];
step('big', [...$there, strlen($back), hash('sha256', $back)]);

step('error', array_map(fn ($sql) => refused(fn () => $c->query($sql)),
    ["INSERT INTO photos (title) VALUES ('sea')", 'SELECT * FROM nothing', 'SELEKT 1']));
step('after', $rows('SELECT 1'));

$results = function (string $sql) use ($c) {
    $all = [];
    $r = $c->query($sql);
    do {
        $all[] = $r->columnCount() ? $r->fetchAll(PDO::FETCH_NUM) : [$r->rowCount()];
    } while ($r->nextRowset());
    return $all;
};
$call = $results('CALL two(7, @twice)');
step('results', [$call, $rows('SELECT @twice')]);

$loaded = [$c->exec("LOAD DATA LOCAL INFILE '" . getenv('INFILE') . "' INTO TABLE words"), $rows('SELECT COUNT(*), SUM(n), MIN(word) FROM words')];
$missing = refused(fn () => @$c->exec("LOAD DATA LOCAL INFILE '/none/file' INTO TABLE words"));
step('infile', [$loaded, $missing[0] !== 'no error', $rows('SELECT COUNT(*) FROM words')]);

if ($sequence = getenv('SEQUENCE')) {
    $c->exec("INSERT INTO keyed VALUES (NEXTVAL('$sequence'), '$login')");
    step('nextval', [$c->lastInsertId(), $rows('SELECT LAST_INSERT_ID()')[0][0], $rows('SELECT MAX(id) FROM keyed')[0][0]]);
    $c->prepare("INSERT INTO keyed VALUES (NEXTVAL('$sequence'), ?)")->execute([$login]);
    step('nextval prepared', [$c->lastInsertId(), $rows('SELECT LAST_INSERT_ID()')[0][0], $rows('SELECT MAX(id) FROM keyed')[0][0]]);
}
$c = null;
step('refused', refused(fn () => connect('wrong')));
