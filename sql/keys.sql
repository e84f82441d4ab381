-- The shop's keys and indexes, made after the rows: sorted once, checked once.

-- So that each index is made in one go, wherever the seed runs.
SET LOCAL maintenance_work_mem = '256MB';

ALTER TABLE shop.users    ADD CONSTRAINT users_pkey PRIMARY KEY (id),
                          ADD CONSTRAINT users_email_key UNIQUE (email);
ALTER TABLE shop.items    ADD CONSTRAINT items_pkey PRIMARY KEY (id);
ALTER TABLE shop.comments ADD CONSTRAINT comments_pkey PRIMARY KEY (id);
ALTER TABLE shop.accounts ADD CONSTRAINT accounts_pkey PRIMARY KEY (id);
ALTER TABLE shop.fortunes ADD CONSTRAINT fortunes_pkey PRIMARY KEY (id);
ALTER TABLE shop.ledger   ADD CONSTRAINT ledger_pkey PRIMARY KEY (id);
ALTER TABLE shop.views    ADD CONSTRAINT views_pkey PRIMARY KEY (item_id);
ALTER TABLE shop.members  ADD CONSTRAINT members_pkey PRIMARY KEY (id),
                          ADD CONSTRAINT members_email_key UNIQUE (email);
ALTER TABLE shop.document_originals ADD CONSTRAINT document_originals_pkey PRIMARY KEY (id);
ALTER TABLE shop.documents    ADD CONSTRAINT documents_pkey PRIMARY KEY (id);
ALTER TABLE shop.measurements ADD CONSTRAINT measurements_pkey PRIMARY KEY (id);

ALTER TABLE shop.items    ADD CONSTRAINT items_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES shop.users (id);
ALTER TABLE shop.comments ADD CONSTRAINT comments_item_id_fkey FOREIGN KEY (item_id) REFERENCES shop.items (id),
                          ADD CONSTRAINT comments_user_id_fkey FOREIGN KEY (user_id) REFERENCES shop.users (id);
ALTER TABLE shop.accounts ADD CONSTRAINT accounts_user_id_fkey FOREIGN KEY (user_id) REFERENCES shop.users (id);
ALTER TABLE shop.ledger   ADD CONSTRAINT ledger_from_account_fkey FOREIGN KEY (from_account) REFERENCES shop.accounts (id),
                          ADD CONSTRAINT ledger_to_account_fkey FOREIGN KEY (to_account) REFERENCES shop.accounts (id);
ALTER TABLE shop.views    ADD CONSTRAINT views_item_id_fkey FOREIGN KEY (item_id) REFERENCES shop.items (id);

CREATE INDEX items_owner_id_idx   ON shop.items (owner_id);
CREATE INDEX comments_item_id_idx ON shop.comments (item_id);
CREATE INDEX accounts_user_id_idx ON shop.accounts (user_id);
CREATE INDEX comments_created_at_idx ON shop.comments (created_at);

-- For `search`, whose condition repeats the expression.
CREATE INDEX items_words_idx ON shop.items USING gin (to_tsvector('english', title || ' ' || coalesce(description, '')));
-- Without a pending list: now and then it makes one statement work off what hundreds left behind.
CREATE INDEX documents_body_idx ON shop.documents USING gin (body jsonb_path_ops) WITH (fastupdate = off);
