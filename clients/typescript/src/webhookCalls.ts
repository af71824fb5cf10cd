/** Registering and looking after webhooks. `webhooks.ts` checks what they deliver. */
import type { Calls, Schemas } from './api.js';
import { byPage } from './pages.js';

export class Webhooks {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** The answer has the signing secret, which is shown this once. */
  register(webhook: Schemas['WebhookBody']): Promise<Schemas['WebhookRegistered']> {
    return this.#calls.write((api) => api.POST('/webhooks', { body: webhook }));
  }

  async list(): Promise<Schemas['Webhook'][]> {
    return (await this.#calls.read((api) => api.GET('/webhooks'))).webhooks as Schemas['Webhook'][];
  }

  /** Sets what is given: it may be sent again. */
  async update(id: number, patch: Schemas['WebhookPatch']): Promise<Schemas['Webhook']> {
    const params = { path: { id } };
    const changed = await this.#calls.read((api) => api.PATCH('/webhooks/{id}', { params, body: patch }));
    return changed as Schemas['Webhook'];
  }

  async delete(id: number): Promise<void> {
    const params = { path: { id } };
    await this.#calls.write((api) => api.DELETE('/webhooks/{id}', { params }));
  }

  /** A new secret; for 24 hours both sign. */
  async rotateSecret(id: number): Promise<Schemas['RotatedSecret']> {
    const params = { path: { id } };
    return this.#calls.write((api) => api.POST('/webhooks/{id}/rotate-secret', { params }));
  }

  /** Has made-up data sent, with `test: true`. */
  async test(id: number, event: Schemas['TestBody']['event']): Promise<void> {
    const params = { path: { id } };
    await this.#calls.write((api) => api.POST('/webhooks/{id}/test', { params, body: { event } }));
  }

  /** Has a delivery sent again. */
  async resend(id: number, deliveryId: string): Promise<void> {
    const params = { path: { id, deliveryId } };
    await this.#calls.write((api) => api.POST('/webhooks/{id}/deliveries/{deliveryId}/resend', { params }));
  }

  /** The deliveries of a webhook, the newest first. */
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
