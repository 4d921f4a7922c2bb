<?php
// The generated keys of PHP's mysqli and PDO: keys.php mysqli|PDO HOST PORT USER PASSWORD SCHEMA [KEY]
[, $driver, $host, $port, $user, $password, $schema] = $argv;
$key = $argv[7] ?? '';
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);

if ($driver === 'mysqli') {
    $c = new mysqli($host, $user, $password, $schema, (int) $port);
    $write = function (string $sql) use ($c) { $c->query($sql); return $c->insert_id; };
    $execute = function (string $sql, array $titles) use ($c) {
        $s = $c->prepare($sql);
        $s->bind_param(str_repeat('s', count($titles)), ...$titles);
        $s->execute();
        if ($s->insert_id !== $c->insert_id) {
            throw new Exception("the statement's insert_id is {$s->insert_id}, the connection's {$c->insert_id}");
        }
        return $s->insert_id;
    };
    $rows = fn (string $sql) => $c->query($sql)->fetch_all();
} else {
    $c = new PDO("mysql:host=$host;port=$port;dbname=$schema", $user, $password, [PDO::ATTR_EMULATE_PREPARES => false, PDO::ATTR_STRINGIFY_FETCHES => true]);
    $write = function (string $sql) use ($c) { $c->exec($sql); return $c->lastInsertId(); };
    $execute = function (string $sql, array $titles) use ($c) { $c->prepare($sql)->execute($titles); return $c->lastInsertId(); };
    $rows = fn (string $sql) => $c->query($sql)->fetchAll(PDO::FETCH_NUM);
}

$insert = fn (string ...$titles) => 'INSERT INTO photos (' . ($key ? 'id, ' : '') . 'title) VALUES '
    . implode(', ', array_map(fn ($title) => '(' . ($key ? "$key, " : '') . "$title)", $titles));

// The drivers tell the first key; programs count on from it.
$step = function (string $name, $first, string ...$titles) use ($rows) {
    $told = [];
    foreach ($titles as $i => $title) {
        $told[] = [(string) ($first + $i), $title];
    }
    $real = $rows("SELECT id, title FROM photos WHERE title IN ('" . implode("', '", $titles) . "') ORDER BY id");
    array_walk_recursive($real, function (&$v) { $v = (string) $v; });
    echo json_encode(['step' => $name, 'value' => [$told, $real]], JSON_THROW_ON_ERROR), "\n";
};

$step('text', $write($insert("'a'")), 'a');
$step('prepared', $execute($insert('?'), ['b']), 'b');
$step('rows in a text', $write($insert("'c'", "'d'", "'e'")), 'c', 'd', 'e');
$step('rows prepared', $execute($insert('?', '?', '?'), ['f', 'g', 'h']), 'f', 'g', 'h');
$step('function', $rows('SELECT LAST_INSERT_ID()')[0][0], 'f');
$step('found', $execute($insert('?') . ' ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)', ['c']), 'c');
