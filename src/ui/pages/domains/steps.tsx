import type { Domain } from '../../../client/index.ts'

const STEPS = [
  ['pending_validation', 'Prove the domain by a DNS record'],
  ['validated', 'Validated'],
  ['provisioning', 'Point the domain to the service'],
  ['active', 'Active: it serves webhooks'],
] as const

/** The way of a domain to its service, with its present step. */
export const Steps = ({ of: { domain, status } }: { readonly of: Domain }) => {
  const present = STEPS.findIndex(([step]) => step === status)
  if (present === -1) return <p class="status cancelled">It is being deleted</p>
  return (
    <ol class="steps" aria-label={`State of ${domain}`}>
      {STEPS.map(([step, text], index) => {
        const isDone = index < present || status === 'active'
        return (
          <li key={step} class={isDone ? 'done' : ''} aria-current={index === present ? 'step' : undefined}>
            {isDone && <span class="unseen">Done: </span>}
            <code>{step}</code>
            <span>{text}</span>
          </li>
        )
      })}
    </ol>
  )
}
