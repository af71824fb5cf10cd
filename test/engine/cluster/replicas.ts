/** Tests ACK=replica: an answered spin is on the disk of each replica or in the ledger. */
import { expect, test } from 'vitest';
import { slotOfCell } from '../../../src/engine/redis/slots.js';
import { replicaWaits, volatileReplicas } from '../../support/failover.js';
import { startService } from '../../support/service.js';
import { until } from '../../support/wait.js';
import { CELLS, isOk, type Seat, type Stage, spin } from './stage.js';

/**
 * Redis settings. Each has a value with which a replica may lose acknowledged writes, and a value with which
 * it can't.
 */
const LAX = [
  ['appendfsync', 'everysec', 'always'],
  ['appendonly', 'no', 'yes'],
] as const;

export function replicaTests(open: () => Stage): void {
  test('ACK=replica answers a spin once every replica has it, or else once the ledger has it', async () => {
    const stage = open();
    const settings = { CELLS: String(CELLS), ROLES: 'http', ACK: 'replica', SPIN_DEADLINE_MS: '5000' };
    const replicated = await startService(stage.stores, settings);
    stage.cleanup.add(() => replicated.stop());
    const [seat] = stage.seats as [Seat, ...Seat[]];
    const booked = (requestId: string) => stage.sql`
      SELECT 1 FROM ledger WHERE partner_id = ${seat.partner.partnerId} AND request_id = ${requestId}`;
    const primary = (await stage.cluster.primaryOf(slotOfCell(seat.cell)))!;
    const replica = await stage.cluster.replicaOf(primary);
    let tries = 0;
    const isAcknowledged = async (): Promise<boolean> => {
      const before = await replicaWaits(replicated.running.metricsPort);
      const answer = await spin(replicated, seat, `acknowledged-${tries++}`);
      const { acknowledged } = await replicaWaits(replicated.running.metricsPort);
      return isOk(answer) && acknowledged > before.acknowledged;
    };
    await until(isAcknowledged, 'the replica acknowledges what is answered');

    await replica.freeze();
    const { late } = await replicaWaits(replicated.running.metricsPort);
    const alone = await spin(replicated, seat, 'alone');
    expect([alone.status, (await booked('alone')).length]).toEqual([200, 1]);
    expect((await replicaWaits(replicated.running.metricsPort)).late).toBeGreaterThan(late);
    // Neither a replica nor the ledger has this spin. A primary without a replica must not acknowledge it.
    await stage.sql.begin(async (tx) => {
      await tx`LOCK TABLE ledger IN SHARE MODE`;
      const answer = await spin(replicated, seat, 'nowhere');
      expect([answer.status, answer.body.errorCode]).toEqual([409, 'KS-4110']);
    });
    replica.thaw();
    await until(isAcknowledged, 'the replica acknowledges again');
    expect((await spin(replicated, seat, 'nowhere')).status).toBe(200);
    await until(async () => (await booked('nowhere')).length === 1, 'it is booked');
    await stage.replaysHold([{ seat, requestId: 'alone', text: alone.text }]);
  });

  test.each(LAX)(
    'with ACK=replica, acknowledgements of a replica that has %s %s do not count',
    async (name, value, durable) => {
      const { cluster, stores, sql, seats, cleanup } = open();
      const [seat] = seats as [Seat, ...Seat[]];
      const front = await startService(stores, {
        CELLS: String(CELLS),
        ROLES: 'http',
        ACK: 'replica',
        SPIN_DEADLINE_MS: '20000',
      });
      cleanup.add(() => front.stop());
      const { metricsPort } = front.running;
      const replica = await cluster.replicaOf((await cluster.primaryOf(slotOfCell(seat.cell)))!);
      let tries = 0;
      const isAcknowledged = async (): Promise<boolean> => {
        const before = await replicaWaits(metricsPort);
        const answer = await spin(front, seat, `${name}-${tries++}`);
        return isOk(answer) && (await replicaWaits(metricsPort)).acknowledged > before.acknowledged;
      };
      await until(isAcknowledged, 'the replica acknowledges what is answered');
      await cluster.ask(replica, 'CONFIG', 'SET', name, value);
      try {
        await until(async () => (await volatileReplicas(metricsPort)) > 0, `${value} is noticed`);
        const { acknowledged } = await replicaWaits(metricsPort);
        const requestId = `lax-${name}`;
        expect((await spin(front, seat, requestId)).status).toBe(200);
        const booked = await sql`
        SELECT 1 FROM ledger WHERE partner_id = ${seat.partner.partnerId} AND request_id = ${requestId}`;
        expect([booked.length, (await replicaWaits(metricsPort)).acknowledged]).toEqual([1, acknowledged]);
      } finally {
        await cluster.ask(replica, 'CONFIG', 'SET', name, durable);
      }
      await until(async () => (await volatileReplicas(metricsPort)) === 0, `${durable} is noticed`);
      await until(isAcknowledged, 'the replica counts again');
    },
  );
}
