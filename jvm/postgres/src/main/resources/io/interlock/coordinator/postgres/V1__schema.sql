-- The coordinator's tables and functions. Run by a superuser, or by an owner of the database who may create the
-- two roles or is a member of interlock_admin already. Needs PostgreSQL 16 or newer.
--
-- interlock_admin   owns the schema, the tables and the functions; runs the migrations and repair
-- interlock_writer  may execute the functions of writers and nothing else
--
-- Neither can log in: grant them to the logins that shall have them.

DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'interlock_admin') THEN
    CREATE ROLE interlock_admin NOLOGIN;
    GRANT interlock_admin TO CURRENT_USER;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'interlock_writer') THEN
    CREATE ROLE interlock_writer NOLOGIN;
  END IF;
END
$$;

-- The migration runner may have made the schema already, for its own history.
CREATE SCHEMA IF NOT EXISTS interlock AUTHORIZATION interlock_admin;
GRANT ALL ON SCHEMA interlock TO interlock_admin;
GRANT USAGE ON SCHEMA interlock TO interlock_writer;
REVOKE ALL ON SCHEMA interlock FROM PUBLIC;

SET ROLE interlock_admin;

ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
ALTER DEFAULT PRIVILEGES REVOKE USAGE ON TYPES FROM PUBLIC;

-- Which database this is. A dump that is restored brings the id of the database it was taken of.
CREATE TABLE interlock.coordinator (
  id     uuid    NOT NULL DEFAULT gen_random_uuid(),
  single boolean PRIMARY KEY DEFAULT true CHECK (single)
);

INSERT INTO interlock.coordinator DEFAULT VALUES;

-- One row for each table. Every function locks it first: it orders the table's commits.
--
-- id         in the stamps of the commits that this row has ordered. One that is ordered under
--            another path, to which the table was moved for a while, has another row's
-- log_path   the folder _delta_log, fully qualified
-- table_id   Delta's id of the table; '' before its first commit; null after a foreign commit,
--            which may have changed it
-- base_table_id  the id before the commits that were ratified last; null if it is not known. Who has
--            read the table before a ratified CREATE OR REPLACE has lost against it: the table was
--            not dropped and created anew
-- epoch      starts anew what is known of the table: counts re-creations and repairs
-- sequence   counts revocations within the epoch: a commit of the log with this row's id and epoch
--            and a lower sequence was revoked, and then published by somebody late; one above the
--            head with an equal or higher sequence is missing in the database
-- head       the last version that was ratified or adopted; -1 where there is none
-- published  the last version that is known to be in the log; never above the head
-- cleared    contents are kept above this version only
CREATE TABLE interlock.tables (
  key        bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id         uuid        NOT NULL DEFAULT gen_random_uuid(),
  log_path   text        NOT NULL UNIQUE,
  table_id   text,
  base_table_id text,
  epoch      bigint      NOT NULL DEFAULT 0,
  sequence   bigint      NOT NULL DEFAULT 0,
  head       bigint      NOT NULL CHECK (head >= -1),
  published  bigint      NOT NULL CHECK (published >= -1),
  cleared    bigint      NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CHECK (published <= head)
) WITH (fillfactor = 50);

-- The commits that were ratified, as long as they are of use. Foreign commits have no row.
--
-- attempt      one for each call of commit; what outcome() asks for
-- content      the bytes of N.json; null where they are in a staged file, and later
-- staged_name  the staged file in the folder _delta_log that holds them instead
-- size, sha256 of the bytes
CREATE TABLE interlock.commits (
  key         bigint      NOT NULL REFERENCES interlock.tables ON DELETE CASCADE,
  version     bigint      NOT NULL CHECK (version >= 0),
  txn_id      text        NOT NULL,
  attempt     uuid        NOT NULL,
  epoch       bigint      NOT NULL,
  sequence    bigint      NOT NULL,
  content     bytea,
  staged_name text,
  size        bigint      NOT NULL,
  sha256      bytea,
  created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (key, version),
  UNIQUE (key, txn_id)
);

-- Attempts that were asked for and not found. A late call of theirs is refused.
CREATE TABLE interlock.abandoned (
  attempt    uuid        PRIMARY KEY,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE INDEX ON interlock.abandoned (created_at);

-- The functions: all that a writer can do.
--
-- Each locks the row of its table before it reads anything else, so calls for one table happen one
-- after the other; what a call did counts from the caller's COMMIT. Several calls, of several
-- tables too, may share a transaction: the caller orders them by path, and rolls all back if one
-- was refused. READ COMMITTED is required (25001 elsewhere).
--
-- Answers are rows of interlock.reply, at least one: version and what follows it are null where
-- there is nothing to list. epoch, sequence, head and published are the table's after the call,
-- all null if the path is not attached. Arguments that no correct caller sends raise 22023.

CREATE TYPE interlock.reply AS (
  status         text,
  coordinator_id uuid,
  epoch          bigint,
  sequence       bigint,
  head           bigint,
  published      bigint,
  version        bigint,
  txn_id         text,
  content        bytea,
  staged_name    text,
  size           bigint,
  sha256         bytea
);

CREATE TYPE interlock.attachment AS (
  id        uuid,
  table_id  text,
  epoch     bigint,
  sequence  bigint,
  head      bigint,
  head_txn  text,
  published bigint
);

-- Internal: the row of a table, locked to the end of the transaction; all null if there is none.
-- A snapshot older than the lock could miss what its last holder did: hence the isolation level.
-- Nobody else can commit to the table meanwhile: a transaction that is idle for a minute ends,
-- whatever longer time its session allows itself.
CREATE FUNCTION interlock.locked(p_log_path text) RETURNS interlock.tables
LANGUAGE plpgsql SET search_path = pg_catalog, interlock, pg_temp AS $$
DECLARE
  t tables;
  longest_idle CONSTANT interval := '1 minute';
  idle CONSTANT interval := current_setting('idle_in_transaction_session_timeout')::interval;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE 'Interlock''s functions need isolation level READ COMMITTED'
      USING ERRCODE = 'active_sql_transaction';
  END IF;
  IF idle = interval '0' OR idle > longest_idle THEN
    PERFORM set_config('idle_in_transaction_session_timeout', '1min', true);
  END IF;
  SELECT * INTO t FROM tables WHERE log_path = p_log_path FOR UPDATE;
  RETURN t;
END
$$;

-- Internal: a table's state and its commits of the versions from p_low to p_high; of p_txn_ids
-- only, if that is given. With p_contents, all contents that are not known to be published, and of
-- the others those that come first, 16 MiB together.
CREATE FUNCTION interlock.replies(
  t interlock.tables, p_status text,
  p_low bigint DEFAULT 0, p_high bigint DEFAULT -1,
  p_contents boolean DEFAULT false, p_txn_ids text[] DEFAULT NULL
) RETURNS SETOF interlock.reply
LANGUAGE sql STABLE SET search_path = pg_catalog, interlock, pg_temp AS $$
  SELECT p_status, o.id, (t).epoch, (t).sequence, (t).head, (t).published,
         c.version, c.txn_id,
         CASE WHEN p_contents AND (
           c.version > (t).published
           OR sum(octet_length(c.content)) OVER (ORDER BY c.version) <= 16777216
         ) THEN c.content END,
         c.staged_name, c.size, c.sha256
  FROM coordinator o
  LEFT JOIN commits c ON c.key = (t).key AND c.version BETWEEN p_low AND p_high
    AND (p_txn_ids IS NULL OR c.txn_id = ANY (p_txn_ids))
  ORDER BY c.version
$$;

-- Internal: a table's state for attach.
CREATE FUNCTION interlock.attached(t interlock.tables, p_table_id text)
RETURNS interlock.attachment
LANGUAGE sql STABLE SET search_path = pg_catalog, interlock, pg_temp AS $$
  SELECT (t).id, coalesce((t).table_id, p_table_id), (t).epoch, (t).sequence, (t).head,
         (SELECT txn_id FROM commits
          WHERE key = (t).key AND version = (t).head AND epoch = (t).epoch),
         (t).published
$$;

-- Internal: whether the id is that of another table than the one that is known. The id before
-- commits which wait to be published is not; but a table that is created has none before, and may
-- have been dropped since.
CREATE FUNCTION interlock.is_other_table(t interlock.tables, p_table_id text) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, interlock, pg_temp AS $$
  SELECT (t).table_id <> p_table_id AND NOT coalesce(
    (t).published < (t).head AND (t).base_table_id = p_table_id AND p_table_id <> '', false
  )
$$;

-- Internal: refuses what no correct caller sends, before anything of it can reach a constraint,
-- whose message would show it.
CREATE FUNCTION interlock.check_table(p_log_path text, p_table_id text, p_log_head bigint)
RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, interlock, pg_temp AS $$
BEGIN
  IF coalesce(p_log_path, '') = '' OR octet_length(p_log_path) > 2000
    OR p_table_id IS NULL OR octet_length(p_table_id) > 200
    OR p_log_head IS NULL OR p_log_head < -1
  THEN
    RAISE 'log path, table id or version out of bounds' USING ERRCODE = 'invalid_parameter_value';
  END IF;
END
$$;

-- Internal: the same for the commits of a call.
CREATE FUNCTION interlock.check_batch(
  p_attempt uuid, p_txn_ids text[], p_contents bytea[], p_staged_names text[], p_sizes bigint[],
  p_sha256s bytea[]
) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, interlock, pg_temp AS $$
DECLARE
  n CONSTANT integer := cardinality(p_txn_ids);
BEGIN
  IF p_attempt IS NULL OR n IS NULL OR n NOT BETWEEN 1 AND 1000
    OR cardinality(p_contents) IS DISTINCT FROM n
    OR cardinality(p_staged_names) IS DISTINCT FROM n
    OR cardinality(p_sizes) IS DISTINCT FROM n
    OR cardinality(p_sha256s) IS DISTINCT FROM n
    OR (n > 1 AND n <> (SELECT count(DISTINCT txn_id) FROM unnest(p_txn_ids) AS b (txn_id)))
    OR EXISTS (
      SELECT FROM unnest(p_txn_ids, p_contents, p_staged_names, p_sizes, p_sha256s)
        AS b (txn_id, content, staged_name, size, sha256)
      WHERE coalesce(octet_length(txn_id), 0) NOT BETWEEN 1 AND 200
        OR size IS NULL
        OR size < 0
        OR (content IS NULL) = (staged_name IS NULL)
        OR (content IS NOT NULL AND (octet_length(content) <> size OR size > 2097152))
        OR (staged_name IS NOT NULL AND sha256 IS NULL)
        OR staged_name !~ '^\.[0-9]+\.[0-9A-Za-z_-]+\.staged$'
        OR octet_length(staged_name) > 250
        OR octet_length(sha256) <> 32
    )
  THEN
    RAISE 'attempt, transaction ids, contents or staged files out of bounds'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
END
$$;

-- Internal: forgets what nobody needs any more, at most 2,000 rows of each kind: the contents of
-- published versions before the last 100; commits that are a day old and before the last 10,000;
-- abandoned attempts of a month ago.
CREATE FUNCTION interlock.forget(t interlock.tables) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, interlock, pg_temp AS $$
DECLARE
  clear_to CONSTANT bigint := least(t.published - 100, t.cleared + 2000);
BEGIN
  IF clear_to > t.cleared THEN
    UPDATE commits SET content = NULL
    WHERE key = t.key AND version > t.cleared AND version <= clear_to;
    UPDATE tables SET cleared = clear_to WHERE key = t.key;
  END IF;
  DELETE FROM commits WHERE key = t.key AND version IN (
    SELECT version FROM commits
    WHERE key = t.key AND version <= least(t.published, t.head - 10000)
      AND created_at < clock_timestamp() - interval '1 day'
    ORDER BY version LIMIT 2000
  );
  DELETE FROM abandoned WHERE attempt IN (
    SELECT attempt FROM abandoned WHERE created_at < clock_timestamp() - interval '30 days'
    ORDER BY created_at LIMIT 2000 FOR UPDATE SKIP LOCKED
  );
END
$$;

-- attach(p_log_path text, p_table_id text, p_log_head bigint) -> one interlock.attachment
--
-- What the coordinator knows of a table. A path that it does not know is registered, with
-- p_log_head (the last version that the caller found in the log, -1 for none) as head and
-- published; p_table_id is '' for a table that has no commit yet. For a known path nothing
-- changes. What the caller has to look at:
--   table_id   another than p_table_id: the log was read before a change of it, or the table was
--              created anew
--   head       below the log's last version: foreign commits to adopt, or a restored database
--   published  above the log's last version, in a log that was listed after this answer: the
--              table was created anew. So it was if the log's commit at version published is
--              known and another than the one ratified. See recreated()
--   head_txn   the transaction ratified as head; null if the head is foreign or of an older epoch
CREATE FUNCTION interlock.attach(p_log_path text, p_table_id text, p_log_head bigint)
RETURNS SETOF interlock.attachment
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, interlock, pg_temp AS $$
DECLARE
  t tables;
BEGIN
  PERFORM check_table(p_log_path, p_table_id, p_log_head);
  t := locked(p_log_path);
  IF t.key IS NULL THEN
    INSERT INTO tables (log_path, table_id, head, published, cleared)
    VALUES (p_log_path, p_table_id, p_log_head, p_log_head, p_log_head)
    ON CONFLICT (log_path) DO NOTHING;
    t := locked(p_log_path);
  END IF;
  RETURN QUERY SELECT * FROM attached(t, p_table_id);
END
$$;

-- recreated(p_log_path text, p_epoch bigint, p_head bigint, p_table_id text, p_log_head bigint)
--   -> one interlock.attachment
--
-- The caller was told (p_epoch, p_head) by attach, listed the log after that, and found that the
-- published commits are not there: another table was created at the path. Starts anew: epoch + 1,
-- head = published = p_log_head, commits deleted. Changes nothing if (p_epoch, p_head) is not the
-- row's any more, or if neither a shorter log nor the id of another table speaks for it. No rows for
-- a path that is not attached.
CREATE FUNCTION interlock.recreated(
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

-- commit(p_log_path text, p_table_id text, p_epoch bigint, p_head bigint, p_sequence bigint,
--        p_head_txn text, p_attempt uuid, p_new_table_id text, p_txn_ids text[],
--        p_contents bytea[], p_staged_names text[], p_sizes bigint[], p_sha256s bytea[])
--   -> interlock.reply
--
-- Ratifies the versions p_head + 1, p_head + 2, ..., one for each of p_txn_ids: all or none.
--   p_epoch, p_sequence  what the contents are stamped with
--   p_head               the version that the first of them was judged against
--   p_head_txn           the transaction that the caller found, or published itself, at p_head in
--                        the log: moves the mark published to p_head. '' if the commit there has
--                        no transaction id; null if the caller has not looked
--   p_attempt            new for each call
--   p_new_table_id       the table's id after these commits
--   p_contents[i] (up to 2 MiB) or p_staged_names[i] (with its hash), the other null;
--                        p_sizes[i] always
--
-- status, in the order in which they are looked for; only the first changes the head:
--   replayed   some of p_txn_ids are published already: their rows, without contents. None of the
--              others was committed
--   epoch      the path is not attached, or epoch or sequence are others: attach, read the log
--              and judge again
--   table      p_table_id is that of another table; not if it is the table's before its tail
--   abandoned  outcome() was asked for this attempt, and has denied it
--   ahead      p_head is above the head: the log has versions that are not in the database
--   foreign    the log has another transaction at p_head than the one ratified, whose row this
--              is, with contents: revoke, or an error if it counts as published
--   taken      the head is above p_head: the winners, with contents, as far as they are known. A
--              version missing among them is foreign; one without content and staged_name is
--              published long since. Own commits may be among them, after a lost reply
--   tail       the versions up to p_head are ratified and the caller has not looked whether they
--              are published: the rows above published, with contents, to publish and compare
--   committed  the new rows, without contents
CREATE FUNCTION interlock.commit(
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

-- outcome(p_log_path text, p_attempt uuid) -> interlock.reply
--
-- What became of an attempt whose reply was lost; final.
--   committed  its commits, without contents: ratified, and not revoked since
--   abandoned  there are none, and a late call of this attempt will be refused
-- To be asked within a day of the attempt: then it is remembered for certain.
CREATE FUNCTION interlock.outcome(p_log_path text, p_attempt uuid) RETURNS SETOF interlock.reply
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, interlock, pg_temp AS $$
DECLARE
  t CONSTANT tables := locked(p_log_path);
  low bigint;
  high bigint;
BEGIN
  SELECT min(version), max(version) INTO low, high FROM commits
  WHERE key = t.key AND attempt = p_attempt;
  IF low IS NOT NULL THEN
    RETURN QUERY SELECT * FROM replies(t, 'committed', low, high);
  ELSE
    IF p_attempt IS NULL THEN
      RAISE 'attempt is missing' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    INSERT INTO abandoned (attempt) VALUES (p_attempt) ON CONFLICT (attempt) DO NOTHING;
    RETURN QUERY SELECT * FROM replies(t, 'abandoned');
  END IF;
END
$$;

-- published(p_log_path text, p_epoch bigint, p_version bigint, p_txn_id text) -> interlock.reply
--
-- The bytes of p_txn_id are in the log at p_version, and those of the versions before it.
--   published  so marked, now or before
--   unchanged  the epoch is another, or p_txn_id was not ratified for p_version
CREATE FUNCTION interlock.published(
  p_log_path text, p_epoch bigint, p_version bigint, p_txn_id text
) RETURNS SETOF interlock.reply
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, interlock, pg_temp AS $$
DECLARE
  t tables := locked(p_log_path);
BEGIN
  IF t.epoch IS DISTINCT FROM p_epoch OR NOT EXISTS (
    SELECT FROM commits WHERE key = t.key AND version = p_version AND txn_id = p_txn_id
  ) THEN
    RETURN QUERY SELECT * FROM replies(t, 'unchanged');
  ELSE
    IF p_version > t.published THEN
      UPDATE tables SET published = p_version WHERE key = t.key RETURNING * INTO t;
    END IF;
    RETURN QUERY SELECT * FROM replies(t, 'published');
  END IF;
END
$$;

-- tail(p_log_path text) -> interlock.reply
--
-- The commits that are ratified and not known to be published, with contents, in order.
--   tail   the rows; one without a version if there are none
--   epoch  the path is not attached
CREATE FUNCTION interlock.tail(p_log_path text) RETURNS SETOF interlock.reply
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, interlock, pg_temp AS $$
DECLARE
  t CONSTANT tables := locked(p_log_path);
BEGIN
  RETURN QUERY SELECT * FROM replies(
    t, CASE WHEN t.key IS NULL THEN 'epoch' ELSE 'tail' END, t.published + 1, t.head, true);
END
$$;

-- revoke(p_log_path text, p_epoch bigint, p_version bigint, p_txn_id text) -> interlock.reply
--
-- The log has a foreign commit at p_version, for which p_txn_id was ratified. Deletes the commits
-- from p_version on: head = published = p_version, sequence + 1.
--   revoked    done
--   unchanged  the epoch is another, p_txn_id is not ratified for p_version (any more), or it
--              counts as published
CREATE FUNCTION interlock.revoke(
  p_log_path text, p_epoch bigint, p_version bigint, p_txn_id text
) RETURNS SETOF interlock.reply
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, interlock, pg_temp AS $$
DECLARE
  t tables := locked(p_log_path);
BEGIN
  IF t.epoch = p_epoch AND p_version > t.published AND EXISTS (
    SELECT FROM commits WHERE key = t.key AND version = p_version AND txn_id = p_txn_id
  ) THEN
    DELETE FROM commits WHERE key = t.key AND version >= p_version;
    UPDATE tables SET table_id = NULL, sequence = sequence + 1, head = p_version,
      published = p_version, updated_at = clock_timestamp()
    WHERE key = t.key RETURNING * INTO t;
    RETURN QUERY SELECT * FROM replies(t, 'revoked');
  ELSE
    RETURN QUERY SELECT * FROM replies(t, 'unchanged');
  END IF;
END
$$;

-- adopt(p_log_path text, p_epoch bigint, p_head_from bigint, p_head_to bigint) -> interlock.reply
--
-- The log has foreign commits from p_head_from + 1 to p_head_to: head = published = p_head_to.
--   adopted    done
--   unchanged  the epoch is another, the head is not p_head_from, p_head_to is not above it, or
--              commits up to p_head_from are not known to be published: publish and compare first
CREATE FUNCTION interlock.adopt(
  p_log_path text, p_epoch bigint, p_head_from bigint, p_head_to bigint
) RETURNS SETOF interlock.reply
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, interlock, pg_temp AS $$
DECLARE
  t tables := locked(p_log_path);
BEGIN
  IF t.epoch = p_epoch AND t.head = p_head_from AND t.published = t.head
    AND p_head_to > p_head_from
  THEN
    UPDATE tables SET table_id = NULL, head = p_head_to, published = p_head_to,
      updated_at = clock_timestamp()
    WHERE key = t.key RETURNING * INTO t;
    RETURN QUERY SELECT * FROM replies(t, 'adopted');
  ELSE
    RETURN QUERY SELECT * FROM replies(t, 'unchanged');
  END IF;
END
$$;

-- repair(p_log_path text, p_table_id text, p_log_head bigint) -> one interlock.attachment
--
-- For administrators: the log is right. Starts a new epoch with head = published = p_log_head,
-- the log's last version; deletes the commits above it and those which are not known to be in the
-- log, and registers a path that is not known.
-- The commits below serve replays and outcome() only: the log is not compared with them any more.
CREATE FUNCTION interlock.repair(p_log_path text, p_table_id text, p_log_head bigint)
RETURNS SETOF interlock.attachment
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, interlock, pg_temp AS $$
DECLARE
  t tables;
BEGIN
  PERFORM attach(p_log_path, p_table_id, p_log_head);
  t := locked(p_log_path);
  DELETE FROM commits WHERE key = t.key AND version > least(t.published, p_log_head);
  UPDATE tables SET table_id = p_table_id, epoch = epoch + 1, sequence = 0, head = p_log_head,
    published = p_log_head, cleared = least(cleared, p_log_head), updated_at = clock_timestamp()
  WHERE key = t.key RETURNING * INTO t;
  RETURN QUERY SELECT * FROM attached(t, p_table_id);
END
$$;

-- status() -> one row for each table, by path; takes no lock
CREATE FUNCTION interlock.status() RETURNS TABLE (
  coordinator_id uuid, log_path text, table_id text, epoch bigint, sequence bigint, head bigint,
  published bigint, updated_at timestamptz
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, interlock, pg_temp AS $$
  SELECT o.id, t.log_path, t.table_id, t.epoch, t.sequence, t.head, t.published, t.updated_at
  FROM tables t, coordinator o
  ORDER BY t.log_path
$$;

GRANT EXECUTE ON FUNCTION
  interlock.attach, interlock.recreated, interlock.commit, interlock.outcome,
  interlock.published, interlock.tail, interlock.revoke, interlock.adopt, interlock.status
TO interlock_writer;

RESET ROLE;
