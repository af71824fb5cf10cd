/** Whether a player may spin. A player is active until an operator blocks it. */
export type PlayerStatus = 'ACTIVE' | 'BLOCKED';
