import { AppError } from '../../errors.ts'
import { payloadFields, payloadOf } from '../../events/payload.ts'
import type { WebhookRequest } from '../../ports/runtime.ts'
import { sealRequest } from '../../secrets/webhookMasking.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { noWebhook, type WebhookEndpoint } from './findWebhook.ts'
import { placeOf } from '../events/planRuns.ts'
import { storeBody } from './storeBody.ts'
import { requestRun } from '../runs/requestRun.ts'

type Deps = Parameters<typeof requestRun>[0] &
  Pick<CommandDeps, 'keyring' | 'payloads'> & {
    readonly quotas: Pick<CommandDeps['quotas'], 'checkRun' | 'dataFor'>
  }

/** The end of a webhook run. */
export type WebhookEnding =
  /** A large result is a `StoredJson`. */
  | { readonly status: 'succeeded'; readonly result: unknown }
  | { readonly status: 'failed'; readonly message: string }

/**
 * Runs the function of a webhook and waits for its end (SPEC.md, Webhook routes). `readRequest` is called after the
 * quota check. The secrets of the request are sealed before it is stored (I6). Rejects with `quota_exceeded`, with
 * `not_found` when the function was deleted meanwhile, or with `unavailable` when the run did not end in time.
 */
export const callWebhook = async (
  deps: Deps,
  {
    endpoint: { env, deployed },
    readRequest,
    largeBody,
    defaultTimeoutMs,
  }: {
    endpoint: WebhookEndpoint
    readRequest: () => Promise<WebhookRequest>
    /** A body that is stored while it arrives, and is not part of the request. */
    largeBody?: (() => AsyncIterable<Buffer>) | undefined
    /** Timeout of a function that has none, milliseconds. */
    defaultTimeoutMs: number
  },
  caller: Caller,
): Promise<WebhookEnding> => {
  const { keyring, payloads, quotas } = deps
  const { env_id } = env
  await quotas.checkRun(env_id)
  const asked = await readRequest()
  const room = quotas.dataFor(env_id)
  const request = async () => {
    const body = largeBody && (await storeBody(payloads, largeBody(), env, room))
    const { value, sealed } = await sealRequest(body ? { ...asked, ...body.fields } : asked, {
      keyring,
      env_id,
      secretHeaders: deployed.fn.secret_headers ?? [],
    })
    return requestRun(
      deps,
      {
        run: {
          run_type: 'call',
          ...placeOf(deployed),
          once: true, // its caller waits for the reply, and sends the request again if it needs to
          timeout: deployed.fn.timeout ?? defaultTimeoutMs,
        },
        input: {
          kind: 'webhook',
          ...payloadFields('value', await payloads.keep(value, env, room)),
          ...body?.stored,
          sealed,
        },
      },
      caller,
    )
  }
  const { ending } = await request().finally(() => room.release())
  switch (ending?.type) {
    case 'RunSucceeded':
      return { status: 'succeeded', result: payloads.stored(payloadOf('result', ending)) }
    case 'RunFailed':
      if (ending.error.code === 'function_not_found') throw noWebhook() // its build was deleted meanwhile
      if (ending.error.code === 'unavailable') throw new AppError('unavailable', ending.error.message)
      return { status: 'failed', message: ending.error.message }
    case 'RunCancelled':
      return { status: 'failed', message: 'The run was cancelled' }
    case undefined:
      throw new AppError('unavailable', 'The run did not end in time')
    default:
      return ending satisfies never
  }
}
