import * as assert from 'uvu/assert'
import type { Answer } from '../support/http.ts'

/** The error of an answer that must be one. */
export const refusal = ({ status, json, text }: Answer) => {
  const { error } = json as { error?: { code: string; message: string } }
  if (!error) throw new Error(`Expected a refusal, got ${status} ${text}`)
  return { status, ...error }
}

/** The answer is 400 `bad_request`, and its message matches. */
export const isRefused = (answer: Answer, told: RegExp | string) => {
  const { status, code, message } = refusal(answer)
  assert.equal([status, code], [400, 'bad_request'])
  assert.match(message, told)
}
