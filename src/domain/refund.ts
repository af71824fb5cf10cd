/**
 * Prefix of the requestIds of refunds. A refund is an adjustment that the service makes by itself. Operators
 * may not use the prefix.
 */
export const REFUND_PREFIX = 'raffle-void:';

export const refundRequestId = (gameId: number, spinId: string): string =>
  `${REFUND_PREFIX}${gameId}:${spinId}`;

export interface RefundedTicket {
  readonly gameId: number;
  readonly spinId: string;
}

/** Undefined for the requestId of an operator's adjustment. */
export function refundedTicket(requestId: string): RefundedTicket | undefined {
  if (!requestId.startsWith(REFUND_PREFIX)) return undefined;
  const [gameId, spinId] = requestId.slice(REFUND_PREFIX.length).split(':');
  return { gameId: Number(gameId), spinId: spinId! };
}
