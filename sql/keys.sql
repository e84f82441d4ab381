-- The shop's keys and indexes, made after the rows: sorted once, checked once.

ALTER TABLE shop.users    ADD CONSTRAINT users_pkey PRIMARY KEY (id),
                          ADD CONSTRAINT users_email_key UNIQUE (email);
ALTER TABLE shop.items    ADD CONSTRAINT items_pkey PRIMARY KEY (id);
ALTER TABLE shop.comments ADD CONSTRAINT comments_pkey PRIMARY KEY (id);
ALTER TABLE shop.accounts ADD CONSTRAINT accounts_pkey PRIMARY KEY (id);
ALTER TABLE shop.fortunes ADD CONSTRAINT fortunes_pkey PRIMARY KEY (id);

ALTER TABLE shop.items    ADD CONSTRAINT items_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES shop.users (id);
ALTER TABLE shop.comments ADD CONSTRAINT comments_item_id_fkey FOREIGN KEY (item_id) REFERENCES shop.items (id),
                          ADD CONSTRAINT comments_user_id_fkey FOREIGN KEY (user_id) REFERENCES shop.users (id);
ALTER TABLE shop.accounts ADD CONSTRAINT accounts_user_id_fkey FOREIGN KEY (user_id) REFERENCES shop.users (id);

CREATE INDEX items_owner_id_idx   ON shop.items (owner_id);
CREATE INDEX comments_item_id_idx ON shop.comments (item_id);
CREATE INDEX accounts_user_id_idx ON shop.accounts (user_id);
