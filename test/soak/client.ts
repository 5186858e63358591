import { setTimeout as delay } from 'node:timers/promises'
import { newId } from '../../src/ids.ts'
import type { Answer, Api, Sent } from '../support/http.ts'
import type { Recorder } from './recorder.ts'

/** The longest time for one reply: a client of a paused node gives up then. */
const REPLY_MS = 20_000
/** The pause before a request is repeated. */
export const REPEAT_MS = 500
/** Repetitions of a request with a key. Faults end long before. */
export const REPEATS = 200

/** A client of the API that expects refusals and interruptions, and records every other failure. */
export interface SoakClient {
  readonly api: Api
  /** The reply to one request; null if it was interrupted. */
  attempt(method: string, path: string, sent?: Sent): Promise<Answer | null>
  /** Repeats a request with one `Idempotency-Key` until it is accepted. */
  keep(method: string, path: string, sent?: Sent): Promise<Answer | null>
}

export const openSoakClient = (api: Api, recorder: Recorder): SoakClient => {
  const attempt = async (method: string, path: string, sent: Sent = {}): Promise<Answer | null> => {
    const signal = AbortSignal.timeout(REPLY_MS)
    const answer = await api.send(method, path, { ...sent, signal }).catch(() => null)
    if (answer && !isExpected(answer, path))
      recorder.wrongReplies.push({
        request: `${method} ${path}`,
        status: answer.status,
        text: answer.text.slice(0, 500),
      })
    return answer
  }
  return {
    api,
    attempt,
    async keep(method, path, sent = {}) {
      const headers = { ...sent.headers, 'Idempotency-Key': newId() }
      for (let n = 0; n < REPEATS; n++) {
        const answer = await attempt(method, path, { ...sent, headers })
        if (answer && isAccepted(answer)) return answer
        await delay(REPEAT_MS)
      }
      return null
    },
  }
}

export const isAccepted = ({ status }: Answer): boolean => status >= 200 && status <= 299

/** Whether the service may reply so while parts of it fail. A look at an event (404) is judged by the checker. */
const isExpected = (answer: Answer, path: string): boolean => {
  const { status, headers, text } = answer
  if (isAccepted(answer)) return true
  if (status === 503 || status === 429) return headers.has('retry-after')
  if (status === 404) return /^\/events\/[^/]+$/.test(path)
  if (status === 409) return text.includes('still in progress')
  return status === 500 && path.includes('/webhook/') // its run was lost, which the checker compares
}
