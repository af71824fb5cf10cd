/** Descriptions and examples: raffles. */
import type { References } from './operationReference.js';

const PRIZES = [
  { prizeName: 'Dinner for two', prizeTier: 4, valueUsd: 5, count: 1 },
  { prizeName: 'Cinema ticket', prizeTier: 1, valueUsd: 1, count: 2 },
];

export const RAFFLE_REFERENCES: References = {
  createRaffle: {
    description:
      'Makes a raffle of a certified prize table. Tickets without a prize fill the pool up to `poolSize`. The status is `SEALING` until the order of the tickets is sealed, then `ACTIVE`, and `CLOSED` after the last ticket.',
    request: {
      displayName: 'Spring Raffle',
      configName: 'SPRING_RAFFLE',
      ticketPriceUsd: 1,
      poolSize: 8,
      prizes: PRIZES,
    },
    response: {
      gameConfigId: 4,
      displayName: 'Spring Raffle',
      configName: 'SPRING_RAFFLE',
      gameType: 'raffle',
      status: 'SEALING',
      parSheetId: null,
      minWagerUsd: 1,
      maxWagerUsd: 1,
      wagerIncrementUsd: 1,
      partnerId: 2,
      ticketPriceUsd: 1,
      ticketsRemaining: 8,
      poolSize: 8,
      poolCommitment: null,
    },
  },
  getPool: {
    description:
      'Shows the prize table and the commitment that was published before the first ticket. After the last ticket `reveal` proves that the order of the tickets was the committed one.',
    response: {
      gameConfigId: 4,
      displayName: 'Spring Raffle',
      configName: 'SPRING_RAFFLE',
      status: 'CLOSED',
      ticketPriceUsd: 1,
      poolSize: 8,
      prizes: PRIZES,
      poolCommitment: 'c52d486e3cfaf7bd8c98764f22378544f585fed376706fccfe80cbb891459928',
      sealedAt: '2026-11-22T04:13:57.105Z',
      closedAt: '2026-11-22T04:14:01.623Z',
      reveal: {
        seed: '3b7cc7c2c42d37ce510df6304b27de6fe78d6aeeb7b29e3afd546fefcaf6dc0f',
        nonce: '41fedbfe34fb19702d3cace7c6da79b108d483532eafd8ba15ab9f9e7828cb97',
        order: 'AAAAAAIAAAAAAAEAAgAAAA==',
      },
    },
  },
};
