import { useSignal } from '@preact/signals'
import { ask } from '../../frame/api.ts'
import { Action } from '../../parts/action.tsx'
import { Choice } from '../../parts/fields.tsx'
import type { ApiKey, NewApiKey } from './apiKey.ts'
import { showToken } from './issuedToken.tsx'

/** Seconds. */
const OVERLAPS = [
  ['0', 'No time: it ends now'],
  ['3600', '1 hour'],
  ['86400', '1 day'],
  ['604800', '7 days'],
] as const

interface Props {
  readonly of: ApiKey
  readonly onDone: () => void
}

/** Disables, replaces or deletes an API key. */
export const ApiKeyActions = ({ of: { api_key_id, name, enabled }, onDone }: Props) => {
  const overlap = useSignal<(typeof OVERLAPS)[number][0]>('3600')
  const path = { api_key_id }
  return (
    <div class="buttons">
      <Action
        label={enabled ? 'Disable' : 'Enable'}
        does={
          enabled
            ? `Refuses the API key ${name}, its sessions and its service keys until it is enabled again.`
            : `Accepts the API key ${name} again, with its sessions and service keys.`
        }
        asks={enabled}
        run={async () => {
          await ask('PATCH /operator/api-keys/{api_key_id}', { path, body: { enabled: !enabled } })
          onDone()
          return `${enabled ? 'Disabled' : 'Enabled'} the API key ${name}.`
        }}
      />
      <Action
        label="Rotate"
        does={`Creates another API key like ${name}, and shows its token once. The former key then expires.`}
        run={async (idempotencyKey) => {
          const key = await ask<NewApiKey>('POST /operator/api-keys/{api_key_id}/rotate', {
            path,
            body: { overlap_s: Number(overlap.value) },
            idempotencyKey,
          })
          onDone()
          showToken({ what: `API key ${key.name}`, token: key.token })
          return `Created the successor of the API key ${name}.`
        }}
      >
        <Choice
          label="The former key is valid for"
          value={overlap.value}
          options={OVERLAPS}
          onChange={(seconds) => (overlap.value = seconds)}
        />
      </Action>
      <Action
        label="Delete"
        does={`Deletes the API key ${name} and revokes the sessions and service keys that it has issued.`}
        isDangerous
        asks
        run={async () => {
          await ask('DELETE /operator/api-keys/{api_key_id}', { path })
          onDone()
          return `Deleted the API key ${name}.`
        }}
      />
    </div>
  )
}
