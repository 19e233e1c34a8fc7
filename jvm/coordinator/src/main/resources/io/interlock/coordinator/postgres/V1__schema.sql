-- The coordinator's tables. Run by a superuser, or by an owner of the database who may create the
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

RESET ROLE;
