import { type Signal } from '@preact/signals'
import type { ContextVariable } from '../../../client/index.ts'
import { api } from '../../frame/api.ts'
import { Action } from '../../parts/action.tsx'
import { TextField } from '../../parts/fields.tsx'
import { refusalIn } from '../../parts/projectChoice.tsx'
import { useFields } from '../../parts/useFields.ts'
import { ValueField } from './valueField.tsx'

interface Props {
  readonly project: string
  readonly onDone: () => void
}

/** Creates a secret. */
export const CreateSecret = ({ project, onDone }: Props) => {
  const { key, value, description, begin } = useFields({ key: '', value: '', description: '' })
  const refusal = refusalIn(project, 'context', 'create')
  return (
    <div class="toolbar">
      <Action
        label="Create secret"
        does={`Stores a value for ${project}, encrypted. Its functions can read it from then on.`}
        refusal={refusal}
        onOpen={begin}
        run={async (idempotencyKey, isSame) => {
          const created = key.value
          await api.request('POST /v1/projects/{project}/context', {
            path: { project },
            body: { key: created, value: value.value, description: description.value },
            idempotencyKey,
          })
          if (isSame()) value.value = '' // as soon as it is stored
          onDone()
          return `Created ${created}. Functions of ${project} can read it now.`
        }}
      >
        <TextField
          label="Key"
          required
          placeholder="PAYMENT_KEY"
          value={key.value}
          onChange={(text) => (key.value = text)}
        />
        <ValueField value={value} />
        <Description text={description} />
      </Action>
      {refusal && <span class="hint">{refusal}</span>}
    </div>
  )
}

/** Replaces or deletes a secret. */
export const SecretActions = ({
  project,
  secret: { key, description: before },
  onDone,
}: Props & { readonly secret: ContextVariable }) => {
  const { value, description, begin } = useFields({ value: '', description: before })
  const path = { project, key }
  return (
    <div class="buttons">
      <Action
        label="Replace"
        does={`Replaces the value of ${key}. Functions see the new value when they next read it, also in runs in progress.`}
        refusal={refusalIn(project, 'context', 'update')}
        onOpen={begin}
        run={async (_, isSame) => {
          await api.request('PUT /v1/projects/{project}/context/{key}', {
            path,
            body: { value: value.value, description: description.value },
          })
          if (isSame()) value.value = ''
          onDone()
          return `Replaced ${key}. Functions see the new value when they next read it.`
        }}
      >
        <ValueField value={value} />
        <Description text={description} />
      </Action>
      <Action
        label="Delete"
        does={`Deletes ${key} of ${project}. Functions that read it fail from then on, and webhooks that verify signatures with it refuse every request.`}
        isDangerous
        asks
        refusal={refusalIn(project, 'context', 'delete')}
        run={async () => {
          await api.request('DELETE /v1/projects/{project}/context/{key}', { path })
          onDone()
          return `Deleted ${key}. Functions that read it fail from now on.`
        }}
      />
    </div>
  )
}

const Description = ({ text }: { readonly text: Signal<string> }) => (
  <TextField
    label="Description"
    maxLength={1024}
    value={text.value}
    onChange={(value) => (text.value = value)}
  />
)
