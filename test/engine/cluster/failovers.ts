/** Tests the service when a node of its cluster loses its data, is killed, or is replaced by a replica. */
import { expect, test } from 'vitest';
import { slotOfCell } from '../../../src/engine/redis/slots.js';
import { replaceByReplica } from '../../support/cluster.js';
import { allIsBooked, wereRepaired } from '../../support/failover.js';
import { until } from '../../support/wait.js';
import { cellsOf, type Seat, type Stage, spin } from './stage.js';

/** Tests the service when a server loses its data or is killed. */
export function lossTests(open: () => Stage): void {
  test('a cluster node that lost its data is rebuilt while the other nodes keep dealing', async () => {
    const stage = open();
    const [own, others] = await stage.seatsOf(slotOfCell(3));
    const spun = await stage.spinAll(stage.careful, own, 'before', 5);
    const meanwhile = stage.keepSpinning(stage.service, others, 'meanwhile');
    await stage.cluster.ask((await stage.cluster.primaryOf(slotOfCell(3)))!, 'FLUSHALL');
    await stage.isDealing(own, 'after');
    await stage.replaysHold(spun);
    expect((await meanwhile.end()).others).toEqual([]);
    await stage.allHolds();
  });

  test('cells of a killed primary are dealt from again on its replica, while other cells deal without a pause', async () => {
    const stage = open();
    const [own, others] = await stage.seatsOf(slotOfCell(0));
    const requestIds = await stage.spinAll(stage.careful, own, 'released', 5);
    await stage.areReleased(own);
    expect(own.length).toBeGreaterThan(0);
    expect(others.length).toBeGreaterThan(0);
    const lasting = stage.keepSpinning(stage.careful, own, 'lasting');
    const elsewhere = stage.keepSpinning(stage.service, others, 'elsewhere');
    await until(() => lasting.spun.length > 20, 'spins are dealt');
    const replaced = replaceByReplica(stage.cluster, slotOfCell(0));
    const away = `Redis does not respond for cells ${own.map(({ cell }) => cell).join(', ')}`;
    await until(async () => {
      const ready = await stage.service.request('GET', '/readyz');
      const { body } = await stage.service.request<{ unserved: string[] }>('GET', '/statusz');
      return ready.status === 200 && body.unserved.includes(away);
    }, 'the front end says which cells are away, and is ready for the others');
    const dealtBefore = elsewhere.spun.length;
    const old = await replaced;
    expect(elsewhere.spun.length).toBeGreaterThan(dealtBefore);
    await stage.isDealing(own, 'promoted');
    const { spun, others: failed } = await lasting.end();
    const codes = failed.map(({ body }) => String(body.errorCode));
    // These codes mean, in this order: nothing was done, the request may have been executed, or the queue is
    // not replenished yet.
    expect(codes.filter((code) => !['KS-5002', 'KS-4110', 'KS-4203'].includes(code))).toEqual([]);
    expect(codes.length).toBeGreaterThan(0);
    // When the primary was killed, the newest of these request ids were not yet in a run.
    await stage.replaysHold([...requestIds, ...spun]);
    expect((await elsewhere.end()).others).toEqual([]);
    await old.start();
    await stage.allHolds();
    await wereRepaired(stage.sql, cellsOf(own));
  });
}

/** Tests the promotion of a replica, both in an orderly failover and when the replica lags behind. */
export function takeOverTests(open: () => Stage): void {
  test('an orderly failover to a replica loses no answered spin', async () => {
    const stage = open();
    const slot = slotOfCell(1);
    const [own] = await stage.seatsOf(slot);
    const before = await stage.cluster.primaryOf(slot);
    const playing = stage.keepSpinning(stage.service, own, 'orderly');
    await until(() => playing.spun.length > 20, 'spins are dealt');
    const { servers } = stage.cluster;
    await stage.cluster.ask(servers[servers.indexOf(before!) + 3]!, 'CLUSTER', 'FAILOVER');
    await until(async () => (await stage.cluster.primaryOf(slot)) !== before, 'the replica has taken over');
    await stage.isDealing(own, 'taken over');
    await stage.replaysHold((await playing.end()).spun);
    await stage.allHolds();
    await wereRepaired(stage.sql, cellsOf(own));
  });

  test('a replica that lags behind the ledger is repaired from the ledger when it is promoted', async () => {
    const stage = open();
    const slot = slotOfCell(2);
    const [own] = await stage.seatsOf(slot);
    const primary = (await stage.cluster.primaryOf(slot))!;
    const replica = await stage.cluster.replicaOf(primary);
    await replica.freeze();
    // The connection is cut, because the data in the socket buffer would otherwise still reach the replica.
    await stage.cluster.ask(primary, 'CLIENT', 'KILL', 'TYPE', 'replica');
    const spun = await stage.spinAll(stage.service, own, 'lacking', 12);
    const [{ partner }] = own as [Seat];
    const player = `/partners/${partner.partnerId}/players/p`;
    const gift = { requestId: 'late gift', amountUsd: 7, reason: 'a gift' };
    expect((await stage.service.operator('POST', `${player}/adjustments`, gift)).status).toBe(200);
    await allIsBooked(stage.stores.redisUrl, cellsOf(own));
    const block = { status: 'BLOCKED', reason: 'to be seen by the replica, too' };
    expect((await stage.service.operator('PATCH', player, block)).status).toBe(200);
    await primary.killForGood();
    replica.thaw();
    await until(async () => (await stage.cluster.primaryOf(slot)) === replica, 'the replica has taken over');
    const [blocked, ...others] = own as [Seat, ...Seat[]];
    await stage.isDealing(others, 'lagging');
    await until(
      async () => (await spin(stage.service, blocked, 'blocked')).body.errorCode === 'KS-4115',
      'is blocked',
    );
    await stage.replaysHold(spun);
    expect((await stage.service.operator('POST', `${player}/adjustments`, gift)).status).toBe(200);
    const unblock = { status: 'ACTIVE', reason: 'seen' };
    expect((await stage.service.operator('PATCH', player, unblock)).status).toBe(200);
    await primary.start();
    await stage.isDealing(own, 'level again');
    await stage.allHolds();
    const written = await wereRepaired(stage.sql, cellsOf(own));
    for (const { requests } of written) expect(Number(requests)).toBeGreaterThanOrEqual(12);
  });
}
