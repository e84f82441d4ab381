-- One small web shop: people who sell items, talk about them, and have money on an account.
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
    balance_cents int8 NOT NULL
);

CREATE TABLE shop.fortunes (
    id      int4 NOT NULL,
    message text NOT NULL
);
