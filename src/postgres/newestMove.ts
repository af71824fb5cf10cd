import { raw } from './client.js';

/** Number of the newest move that is done of a row of `partners`; 0: it never moved. */
export const NEWEST_MOVE_TEXT = `coalesce((SELECT max(m.move_id) FROM partner_moves m
  WHERE m.partner_id = partners.partner_id AND m.switched_at IS NOT NULL), 0) AS newest_move`;
export const NEWEST_MOVE = raw(NEWEST_MOVE_TEXT);
