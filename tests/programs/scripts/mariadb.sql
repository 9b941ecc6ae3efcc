-- Tables made by arithmetic alone, so that every run has the same rows.
CREATE DATABASE proof; USE proof;
CREATE TABLE part(id INT PRIMARY KEY, kind VARCHAR(20), size INT, note TEXT, KEY(kind, size)) ENGINE=InnoDB;
INSERT INTO part SELECT seq, CONCAT('kind', seq MOD 37), seq * 7919 MOD 100003, REPEAT(MD5(seq), 1 + seq MOD 5) FROM seq_1_to_30000;
CREATE TABLE used(part INT, amount DECIMAL(12, 3), at DATE, KEY(part)) ENGINE=InnoDB;
INSERT INTO used SELECT 1 + seq * 104729 MOD 30000, seq MOD 1000 / 8, DATE_ADD('2001-01-01', INTERVAL seq MOD 3000 DAY) FROM seq_1_to_60000;
CREATE TABLE words(id INT PRIMARY KEY, text TEXT, FULLTEXT(text)) ENGINE=InnoDB;
INSERT INTO words SELECT seq, CONCAT('alpha', seq MOD 9, ' beta', seq MOD 13, ' gamma', seq MOD 101) FROM seq_1_to_20000;
SELECT kind, COUNT(*), SUM(size), MIN(note), MAX(note) FROM part GROUP BY kind ORDER BY kind;
SELECT p.kind, SUM(u.amount), COUNT(DISTINCT u.at) FROM part p JOIN used u ON u.part = p.id GROUP BY p.kind ORDER BY 2 DESC, 1;
SELECT COUNT(*) FROM words WHERE MATCH(text) AGAINST('+alpha3 +beta7' IN BOOLEAN MODE);
SET group_concat_max_len = 4000000;
SELECT MD5(GROUP_CONCAT(REGEXP_REPLACE(note, '([a-f]+)([0-9]+)', '\\2-\\1') ORDER BY id)) FROM part WHERE id < 8000;
SELECT id, size, RANK() OVER (PARTITION BY kind ORDER BY size DESC, id) AS r FROM part ORDER BY r, id LIMIT 40;
SELECT MD5(JSON_ARRAYAGG(JSON_OBJECT('id', id, 'kind', kind, 'n', JSON_ARRAY(size, id)) ORDER BY id)) FROM part WHERE id < 5000;
DELIMITER //
CREATE PROCEDURE change_rows(rounds INT) BEGIN
    DECLARE n INT DEFAULT 0;
    WHILE n < rounds DO
        UPDATE part SET note = CONCAT(note, n), size = size + 1 WHERE id = 1 + n * 31 MOD 30000;
        SET n = n + 1;
    END WHILE;
END //
DELIMITER ;
START TRANSACTION; CALL change_rows(8000); COMMIT;
DELETE FROM used WHERE at < '2003-01-01';
ALTER TABLE part ADD COLUMN extra VARCHAR(64) AS (CONCAT(kind, '-', size)) PERSISTENT, ADD KEY(extra);
CHECK TABLE part EXTENDED; CHECKSUM TABLE part, used, words;
