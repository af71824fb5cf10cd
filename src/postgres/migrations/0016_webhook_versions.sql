-- Up Migration

-- The version of the partner API that a webhook was registered with: its deliveries are written as that version has it.
ALTER TABLE webhooks ADD COLUMN api_version text NOT NULL DEFAULT 'v1';
