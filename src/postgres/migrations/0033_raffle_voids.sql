-- Up Migration

-- A raffle that the operator has voided: no ticket of it is sold any more, and each booked one is refunded (cells/raffleVoids.ts).
-- closed_at is set once the ledger has every ticket that was sold; a pool that was never sealed is closed as it is.
ALTER TABLE raffles
  ADD COLUMN voided_at timestamptz,
  ADD COLUMN voided_by text,
  -- Kept with each refund.
  ADD COLUMN void_reason text,
  -- No ticket lies behind this entry; null: some may still be under way.
  ADD COLUMN tickets_to bigint,
  -- Tickets up to this entry are refunded, or can't be.
  ADD COLUMN refunded_to bigint NOT NULL DEFAULT 0,
  ADD COLUMN refunds_done_at timestamptz,
  DROP CONSTRAINT raffles_check,
  ADD CONSTRAINT raffles_check CHECK (closed_at IS NULL OR sealed_at IS NOT NULL OR voided_at IS NOT NULL),
  ADD CONSTRAINT raffles_void CHECK (voided_at IS NULL OR voided_by IS NOT NULL AND void_reason IS NOT NULL);

-- Few at any time: what the workers ask for again and again.
CREATE INDEX raffles_refunding ON raffles (game_id) WHERE voided_at IS NOT NULL AND refunds_done_at IS NULL;

-- Tickets of voided raffles that can't be refunded, such as where the balance would pass its bound.
CREATE TABLE refund_failures (
  game_id integer NOT NULL REFERENCES raffles,
  entry_id bigint NOT NULL,
  refusal text NOT NULL,
  failed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (game_id, entry_id)
);
