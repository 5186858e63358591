import type { Reservation } from '../../content/fileQuota.ts'
import { AppError, isRefusal, PermanentError } from '../../errors.ts'
import { payloadFields, payloadOf } from '../../events/payload.ts'
import type { WebhookRequest } from '../../ports/runtime.ts'
import { sealRequest } from '../../secrets/webhookMasking.ts'
import { placeOf } from '../events/planRuns.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import type { Ending } from '../runs/awaitEnding.ts'
import { requestRun } from '../runs/requestRun.ts'
import { withdrawRun } from '../runs/withdrawRun.ts'
import { admitDelivery } from './admitDelivery.ts'
import { noWebhook, type WebhookEndpoint } from './findWebhook.ts'
import { storeBody } from './storeBody.ts'
import { verifyRequest } from './verifyRequest.ts'

type Deps = Parameters<typeof requestRun>[0] &
  Pick<CommandDeps, 'keyring' | 'payloads' | 'stopping' | 'views'> & {
    readonly quotas: Pick<CommandDeps['quotas'], 'checkRun' | 'dataFor'>
  }

/** The end of a webhook run. */
export type WebhookEnding =
  /** A large result is a `StoredJson`. */
  | {
      readonly status: 'succeeded'
      readonly run_id: string
      readonly result: unknown
      /** True: the run belongs to an earlier request with the same delivery of its provider. */
      readonly isRepeated?: boolean
    }
  | {
      readonly status: 'failed'
      readonly run_id: string
      /** The code and message of the error of the run. */
      readonly code: string
      readonly message: string
      /** The deployed build is a live (development) build. */
      readonly isLive: boolean
    }

interface Requested {
  readonly run_id: string
  readonly stream_id: string
  readonly ending: Ending | null
  /** Of an earlier request. */
  readonly kind?: 'accepted'
}

/**
 * Runs the function of a webhook and waits for its end (SPEC.md, Webhook routes). `readRequest` is called after the
 * quota check, except for an endpoint with `verify`, whose deliveries may be repetitions. The secrets of the request are sealed before it is stored (I6). An endpoint with `verify` runs its
 * function for signed requests only, and once for each delivery that it accepts. Rejects with `unauthorized`, with
 * `quota_exceeded`, with `not_found` when the function was deleted meanwhile, or with `unavailable` when the run did not
 * end in time. One that no worker began does not start later, so its caller may send the request again.
 */
export const callWebhook = async (
  deps: Deps,
  {
    endpoint,
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
  const { env, deployed, webhook } = endpoint
  const { env_id } = env
  const timeout = deployed.fn.timeout ?? defaultTimeoutMs
  const refusal = await refusalOf(quotas.checkRun(env_id))
  if (refusal && !webhook.verify) throw refusal
  const asked = await readRequest()
  // A repeated delivery starts no run, so the plan does not refuse it; to find it, a large body is not stored.
  const room = refusal ? noRoom(refusal) : quotas.dataFor(env_id)
  const request = async (): Promise<Requested> => {
    const { verify } = webhook
    const check = verify && (await verifyRequest(deps, endpoint, verify, asked.headers ?? {}))
    const content = largeBody && (check ? check.through(largeBody()) : largeBody())
    const body = content && (await storeBody(payloads, content, env, room))
    const whole = body ? { ...asked, ...body.fields } : asked
    const delivery = check && (await admitDelivery(deps, endpoint, { check, whole, body, timeout }))
    if (delivery?.kind === 'accepted') return delivery
    if (refusal) throw refusal
    const { value, sealed } = await sealRequest(whole, {
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
          timeout,
        },
        input: {
          kind: 'webhook',
          ...payloadFields('value', await payloads.keep(value, env, room)),
          ...body?.stored,
          sealed,
        },
        onStored: () => room.release(), // the log counts it now
      },
      delivery ? { ...caller, newId: delivery.newId } : caller,
    )
  }
  const { run_id, stream_id, ending, kind } = await request().finally(() => room.release())
  const failed = (code: string, message: string): WebhookEnding => {
    const isLive = deps.views.directory.isLive(deployed.project.project_id, deployed.build.build_id)
    return { status: 'failed', run_id, code, message, isLive }
  }
  switch (ending?.type) {
    case 'RunSucceeded':
      return {
        status: 'succeeded',
        run_id,
        result: payloads.stored(payloadOf('result', ending)),
        ...(kind === 'accepted' && { isRepeated: true }),
      }
    case 'RunFailed': {
      const { code, message } = ending.error
      if (code === 'function_not_found') throw noWebhook() // its build was deleted meanwhile
      if (code === 'unavailable') throw new AppError('unavailable', message)
      return failed(code, message)
    }
    case 'RunCancelled':
      return failed('cancelled', 'The run was cancelled')
    case undefined:
      if (await withdrawRun(deps, { run_id, stream_id }, caller.cause))
        throw new AppError('unavailable', 'No worker began the run in time; it does not start later')
      // Another request would run the function a second time.
      throw new PermanentError('unavailable', `The run ${run_id} did not end in time; it continues`)
    default:
      return ending satisfies never
  }
}

const refusalOf = (check: Promise<void>): Promise<AppError | null> =>
  check.then(
    () => null,
    (error: unknown) => {
      if (isRefusal(error)) return error
      throw error
    },
  )

const noRoom = (refusal: AppError): Reservation => ({ cover: () => Promise.reject(refusal), release() {} })
