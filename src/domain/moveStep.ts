/** Numbers of steps grow, over all moves of all partners: a cell refuses a step once it has seen a later one of the partner. */
export interface MoveStep {
  readonly partnerId: number;
  readonly number: bigint;
}
