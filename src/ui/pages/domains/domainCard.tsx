import { useSignal } from '@preact/signals'
import type { Domain } from '../../../client/index.ts'
import { api } from '../../frame/api.ts'
import { refusalOf } from '../../frame/session.ts'
import { Action } from '../../parts/action.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Copy, Time } from '../../parts/texts.tsx'
import { Steps } from './steps.tsx'

interface Props {
  readonly of: Domain
  readonly onDone: () => void
}

/** One domain: its state, the records that its owner must keep, and what it needs now. */
export const DomainCard = ({ of, onDone }: Props) => {
  const answer = useSignal('')
  const { domain, domain_id, message, status, expires_at, certificate_expires_at } = of
  return (
    <article class="card" aria-labelledby={domain_id}>
      <div class="heading">
        <h2 id={domain_id}>{domain}</h2>
        <div class="buttons">
          <Action
            label="Verify now"
            does={`Looks up the DNS records of ${domain} now. The service also does this regularly.`}
            refusal={status === 'deleting' ? 'It is being deleted' : refusalOf('domain', 'create', domain_id)}
            run={async () => {
              const found = await api.request('POST /v1/domains/{domain_id}/verify', { path: { domain_id } })
              answer.value = found.message
              onDone()
              return `Checked the DNS records of ${domain}.`
            }}
          />
          <Delete of={of} onDone={onDone} />
        </div>
      </div>
      <Steps of={of} />
      {message && <p>{message}</p>}
      <p class="hint" aria-live="polite">
        {answer.value && `The last check: ${answer.value}`}
      </p>
      <Records of={of} />
      {expires_at && (
        <p class="hint">
          It is removed <Time at={expires_at} /> unless it is proved.
        </p>
      )}
      {certificate_expires_at && (
        <p class="hint">
          The certificate expires <Time at={certificate_expires_at} /> and is renewed before.
        </p>
      )}
    </article>
  )
}

const Records = ({ of }: { readonly of: Domain }) => {
  const records = [
    [of.validation_cname_name, of.validation_cname_value, 'which proves that the domain is yours'],
    ...(of.routing_domain
      ? [[of.domain, of.routing_domain, 'which leads requests to the service'] as const]
      : []),
  ] as const
  return (
    <ul class="records" aria-label={`DNS records of ${of.domain}`}>
      {records.map(([name, target, reason]) => (
        <li key={name}>
          <span class="hint">CNAME record, {reason}</span>
          <Facts
            of={{
              Name: (
                <>
                  <code>{name}</code> <Copy text={name} label="Copy name" />
                </>
              ),
              Target: (
                <>
                  <code>{target}</code> <Copy text={target} label="Copy target" />
                </>
              ),
            }}
          />
        </li>
      ))}
    </ul>
  )
}

const Delete = ({ of: { domain, domain_id, status }, onDone }: Props) => (
  <Action
    label="Delete"
    does={
      status === 'active'
        ? `Deletes ${domain}. Its webhooks stop at once: requests to https://${domain}/ receive 404. The webhook URLs of the service itself continue.`
        : `Deletes ${domain}. It serves nothing yet, so nothing stops. Another environment can register it then.`
    }
    isDangerous
    asks
    refusal={status === 'deleting' ? 'It is being deleted' : refusalOf('domain', 'delete', domain_id)}
    run={async () => {
      await api.request('DELETE /v1/domains/{domain_id}', { path: { domain_id } })
      onDone()
      return `Deleted ${domain}.`
    }}
  />
)
