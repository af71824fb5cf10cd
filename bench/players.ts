/** What players are called in the bench. */

/** Added so that every id has the same length. */
const FROM = 10_000_000;

/** The id of a player, by number. */
export const playerName = (number: number): string => `player-${FROM + number}`;
