/** Whether a player may spin. A player is active until the operator blocks it. */
export type PlayerStatus = 'ACTIVE' | 'BLOCKED';
