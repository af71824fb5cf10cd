/**
 * Prefix of the requestIds of refunds. A refund is an adjustment that the service makes by itself. Operators
 * may not use the prefix.
 */
export const REFUND_PREFIX = 'raffle-void:';

/**
 * Returns the requestId of the refund for a ticket of a voided raffle.
 * @param spinId spin id of the ticket
 */
export const refundRequestId = (gameId: number, spinId: string): string =>
  `${REFUND_PREFIX}${gameId}:${spinId}`;
