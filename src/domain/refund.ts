/** The requestIds of refunds: adjustments that the service makes by itself. An operator's own may not begin like them. */
export const REFUND_PREFIX = 'raffle-void:';

/** Of a ticket of a voided raffle. @param spinId of the ticket */
export const refundRequestId = (gameId: number, spinId: string): string =>
  `${REFUND_PREFIX}${gameId}:${spinId}`;
