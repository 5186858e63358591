import { setTimeout } from 'node:timers/promises'
import { emit, fn } from 'svc'

/** Emits the answer to a question token by token. A real agent would forward the tokens of a model. */
export const answer = fn({ 'on-event': 'question:asked' }, async (event) => {
  const { question }: { question: string } = event.data
  const tokens = tokensOf(question)
  for (const token of tokens) {
    await emit('token', token)
    await setTimeout(50)
  }
  return { tokens: tokens.length }
})

const tokensOf = (question: string): string[] =>
  Array.from({ length: 80 }, (_, n) => (n === 0 ? `You asked: ${question}\n` : `${n} `))
