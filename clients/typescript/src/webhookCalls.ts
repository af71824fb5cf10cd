/** Registers and manages webhooks. `webhooks.ts` verifies their deliveries. */
import type { Calls, Schemas } from './api.js';
import { byPage } from './pages.js';

export class Webhooks {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** Registers a webhook. The answer contains the signing secret, which is shown only this once. */
  register(webhook: Schemas['WebhookBody']): Promise<Schemas['WebhookRegistered']> {
    return this.#calls.write((api) => api.POST('/webhooks', { body: webhook }));
  }

  async list(): Promise<Schemas['Webhook'][]> {
    return (await this.#calls.read((api) => api.GET('/webhooks'))).webhooks as Schemas['Webhook'][];
  }

  /** Changes the given members of a webhook. The call is idempotent, so it is repeated like a read. */
  async update(id: number, patch: Schemas['WebhookPatch']): Promise<Schemas['Webhook']> {
    const params = { path: { id } };
    const changed = await this.#calls.read((api) => api.PATCH('/webhooks/{id}', { params, body: patch }));
    return changed as Schemas['Webhook'];
  }

  async delete(id: number): Promise<void> {
    const params = { path: { id } };
    await this.#calls.write((api) => api.DELETE('/webhooks/{id}', { params }));
  }

  /**
   * Creates a new signing secret. For 24 hours `webhook-signature` is made with both the old and the new
   * secret, but `X-Spindle-Signature` with the new secret only.
   */
  async rotateSecret(id: number): Promise<Schemas['RotatedSecret']> {
    const params = { path: { id } };
    return this.#calls.write((api) => api.POST('/webhooks/{id}/rotate-secret', { params }));
  }

  /**
   * Sends a test delivery with example data and `test: true`.
   *
   * @returns the id of the event, which the delivery carries, and the id of the delivery in `deliveries`
   */
  test(id: number, event: Schemas['TestBody']['event']): Promise<Schemas['TestSent']> {
    const params = { path: { id } };
    return this.#calls.write((api) => api.POST('/webhooks/{id}/test', { params, body: { event } }));
  }

  /** Requests that the service sends a webhook delivery again. Returns the number of deliveries: 1. */
  resend(id: number, deliveryId: string): Promise<Schemas['Resent']> {
    const params = { path: { id, deliveryId } };
    return this.#calls.write((api) => api.POST('/webhooks/{id}/deliveries/{deliveryId}/resend', { params }));
  }

  /** Iterates over the deliveries of a webhook, newest first. */
  deliveries(id: number): AsyncGenerator<Schemas['Delivery'], void, undefined> {
    return byPage(
      async (query) => {
        const page = await this.#calls.read((api) =>
          api.GET('/webhooks/{id}/deliveries', { params: { path: { id }, query } }),
        );
        return { items: page.deliveries, total: page.total };
      },
      (delivery) => delivery.id,
    );
  }
}
