-- Who has read a table before a ratified commit that gives it another id, by CREATE OR REPLACE, has
-- lost against that commit: the table was not dropped and created anew.

SET ROLE interlock_admin;

-- base_table_id  the table's id before the commits that were ratified last; null if it is not known
ALTER TABLE interlock.tables ADD COLUMN base_table_id text;

-- Internal: whether the id is that of another table than the one that is known. The id before
-- commits which wait to be published is not; but a table that is created has none before, and may
-- have been dropped since.
CREATE FUNCTION interlock.is_other_table(t interlock.tables, p_table_id text) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, interlock, pg_temp AS $$
  SELECT (t).table_id <> p_table_id AND NOT coalesce(
    (t).published < (t).head AND (t).base_table_id = p_table_id AND p_table_id <> '', false
  )
$$;

-- As before, but ids of the table before its tail do not speak for another table.
CREATE OR REPLACE FUNCTION interlock.recreated(
  p_log_path text, p_epoch bigint, p_head bigint, p_table_id text, p_log_head bigint
) RETURNS SETOF interlock.attachment
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, interlock, pg_temp AS $$
DECLARE
  t tables;
BEGIN
  PERFORM check_table(p_log_path, p_table_id, p_log_head);
  t := locked(p_log_path);
  IF t.epoch = p_epoch AND t.head = p_head
    AND (p_log_head < t.published OR is_other_table(t, p_table_id))
  THEN
    DELETE FROM commits WHERE key = t.key;
    UPDATE tables SET table_id = p_table_id, epoch = epoch + 1, sequence = 0, head = p_log_head,
      published = p_log_head, cleared = p_log_head, updated_at = clock_timestamp()
    WHERE key = t.key RETURNING * INTO t;
  END IF;
  RETURN QUERY SELECT * FROM attached(t, p_table_id) WHERE t.key IS NOT NULL;
END
$$;

-- As before, but `table` is not the answer to a caller who has read the table before its tail.
CREATE OR REPLACE FUNCTION interlock.commit(
  p_log_path text, p_table_id text, p_epoch bigint, p_head bigint, p_sequence bigint,
  p_head_txn text, p_attempt uuid, p_new_table_id text, p_txn_ids text[], p_contents bytea[],
  p_staged_names text[], p_sizes bigint[], p_sha256s bytea[]
) RETURNS SETOF interlock.reply
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, interlock, pg_temp AS $$
DECLARE
  t tables;
  fresh boolean;
  found boolean;
  ratified text;
  answer text;
  low bigint;
  high bigint;
BEGIN
  PERFORM check_table(p_log_path, p_table_id, p_head);
  PERFORM check_table(p_log_path, p_new_table_id, p_head);
  PERFORM check_batch(p_attempt, p_txn_ids, p_contents, p_staged_names, p_sizes, p_sha256s);
  t := locked(p_log_path);
  fresh := t.epoch IS NOT DISTINCT FROM p_epoch AND t.sequence IS NOT DISTINCT FROM p_sequence;
  IF p_head_txn IS NOT NULL THEN
    SELECT txn_id INTO ratified FROM commits
    WHERE key = t.key AND version = p_head AND epoch = t.epoch;
  END IF;
  found := fresh AND ratified = p_head_txn AND p_head > t.published;
  IF found THEN
    t.published := p_head;
  END IF;

  SELECT min(version), max(version) INTO low, high FROM commits
  WHERE key = t.key AND txn_id = ANY (p_txn_ids) AND version <= t.published;
  IF low IS NOT NULL THEN
    answer := 'replayed';
  ELSIF NOT fresh THEN
    answer := 'epoch';
  ELSIF is_other_table(t, p_table_id) THEN
    answer := 'table';
  ELSIF EXISTS (SELECT FROM abandoned WHERE attempt = p_attempt) THEN
    answer := 'abandoned';
  ELSIF p_head > t.head THEN
    answer := 'ahead';
  ELSIF ratified <> p_head_txn THEN
    answer := 'foreign';
    low := p_head;
    high := p_head;
  ELSIF p_head < t.head THEN
    answer := 'taken';
    low := p_head + 1;
    high := t.head;
  ELSIF t.published < t.head THEN
    answer := 'tail';
    low := t.published + 1;
    high := t.head;
  ELSE
    answer := 'committed';
    low := p_head + 1;
    high := p_head + cardinality(p_txn_ids);
    INSERT INTO commits
      (key, version, txn_id, attempt, epoch, sequence, content, staged_name, size, sha256)
    SELECT t.key, p_head + i, txn_id, p_attempt, p_epoch, p_sequence, content, staged_name, size,
           sha256
    FROM unnest(p_txn_ids, p_contents, p_staged_names, p_sizes, p_sha256s)
      WITH ORDINALITY AS b (txn_id, content, staged_name, size, sha256, i);
    t.head := high;
    t.table_id := p_new_table_id;
    t.base_table_id := p_table_id;
  END IF;

  IF found OR answer = 'committed' THEN
    UPDATE tables SET head = t.head, published = t.published, table_id = t.table_id,
      base_table_id = t.base_table_id, updated_at = clock_timestamp()
    WHERE key = t.key;
  END IF;
  IF answer = 'committed' AND p_head / 50 <> t.head / 50 THEN
    PERFORM forget(t);
  END IF;
  RETURN QUERY SELECT * FROM replies(
    t, answer, low, high, answer IN ('foreign', 'taken', 'tail'),
    CASE WHEN answer = 'replayed' THEN p_txn_ids END);
END
$$;

RESET ROLE;
