/** The sandbox: outcomes that testers choose, and the mark of the spins that had them. */
import { type Static, Type } from '#typebox';
import { id, opaque } from '../../domain/schema.js';

/** An outcome code has 16 bits. */
const COMBINATION_INDEX_MAX = 65_535;

export const SandboxMark = Type.Optional(
  Type.Object(
    {
      forced: Type.Boolean({
        description: 'True: a tester chose the outcome (`POST /sandbox/next-outcome`)',
      }),
    },
    { description: 'Of a sandbox account only, and absent where the outcome was drawn' },
  ),
);

const nextOutcomeMembers = {
  gameId: id('Game configuration id of a slot game'),
  playerId: opaque("The partner's own identifier of the player"),
  combinationIndex: Type.Integer({
    minimum: 0,
    maximum: COMBINATION_INDEX_MAX,
    description: "Place of the combination in the PAR sheet's `combinations`, from 0",
  }),
};

export const NextOutcomeBody = Type.Object(nextOutcomeMembers);

export type NextOutcomeBody = Static<typeof NextOutcomeBody>;
