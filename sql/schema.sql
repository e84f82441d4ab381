-- One small web shop: people who sell items, talk about them, look at them, and have money on an account.
--
-- Tables only. Keys and indexes are in keys.sql: loading first and checking afterwards is several times faster than
-- the other way round.

CREATE SCHEMA shop;

CREATE TABLE shop.users (
    id         int4        NOT NULL,
    name       text        NOT NULL,
    email      text        NOT NULL,
    created_at timestamptz NOT NULL
);

CREATE TABLE shop.items (
    id          int4        NOT NULL,
    owner_id    int4        NOT NULL,
    title       text        NOT NULL,
    description text,                  -- null for about one item in eight
    price_cents int4        NOT NULL,
    stock       int4        NOT NULL,
    created_at  timestamptz NOT NULL
);

CREATE TABLE shop.comments (
    id         int4        NOT NULL,
    item_id    int4        NOT NULL,
    user_id    int4        NOT NULL,
    body       text        NOT NULL,
    created_at timestamptz NOT NULL
);

CREATE TABLE shop.accounts (
    id            int4 NOT NULL,
    user_id       int4 NOT NULL,
    opening_cents int8 NOT NULL,       -- as seeded: what the balance is counted from
    balance_cents int8 NOT NULL
);

-- Every transfer since the accounts were opened; empty at the start.
CREATE TABLE shop.ledger (
    id           int8        NOT NULL GENERATED ALWAYS AS IDENTITY,
    from_account int4        NOT NULL,
    to_account   int4        NOT NULL,
    amount_cents int4        NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now()
);

-- How often each item was looked at.
CREATE TABLE shop.views (
    item_id int4 NOT NULL,
    seen    int8 NOT NULL
);

-- Those who signed up; empty at the start.
CREATE TABLE shop.members (
    id    int8 NOT NULL GENERATED ALWAYS AS IDENTITY,
    email text NOT NULL,
    name  text NOT NULL
);

-- What documents are put back from.
CREATE TABLE shop.document_originals (
    id       int4  NOT NULL,
    body     jsonb NOT NULL,
    checksum text  NOT NULL
);

CREATE TABLE shop.documents (
    id       int4  NOT NULL,
    body     jsonb NOT NULL,
    checksum text  NOT NULL            -- of the body without its stock, the one thing that changes
);

-- A column of each common type.
CREATE TABLE shop.measurements (
    id       int4 NOT NULL,
    sensor   int2,
    ticks    int8,
    valid    bool,
    reading  float8,
    exact    numeric,
    label    text,
    taken_at timestamptz,
    day      date,
    device   uuid,
    details  jsonb,
    samples  int4[]
);

CREATE TABLE shop.fortunes (
    id      int4 NOT NULL,
    message text NOT NULL
);
