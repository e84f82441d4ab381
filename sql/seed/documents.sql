-- Copied, and not made like the others: this table is put back before every trial that writes to it.
INSERT INTO shop.documents (id, body, checksum)
SELECT id, body, checksum FROM shop.document_originals ORDER BY id;
