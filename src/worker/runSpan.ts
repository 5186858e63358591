import type { RunPlan } from '../events/run.ts'
import type { Outcome } from '../ports/runtime.ts'
import type { Span, Tracer } from '../ports/tracer.ts'

/** Begins the part of a run in its trace. Attempts of a run are siblings: each continues what started the first one. */
export const beginSpan = (tracer: Tracer, plan: RunPlan, env_id: string): Span => {
  const { run_id, run_type, attempt, target, project_id, origin_run_id, event_id, parent_run_id } = plan
  return tracer.begin('run', {
    kind: 'consumer',
    parent: plan.traceparent,
    attributes: {
      'svc.run_id': run_id,
      'svc.run_type': run_type,
      'svc.attempt': attempt,
      'svc.env_id': env_id,
      'svc.project_id': project_id,
      'svc.function': 'ns' in target ? `${target.ns}/${target.var}` : 'evaluated code',
      ...(origin_run_id !== undefined && { 'svc.origin_run_id': origin_run_id }),
      ...(event_id !== undefined && { 'svc.event_id': event_id }),
      ...(parent_run_id !== undefined && { 'svc.parent_run_id': parent_run_id }),
    },
  })
}

/** `outcome` is null if the run was returned. The text of an error is left out, because it may contain data of users. */
export const endSpan = (span: Span, outcome: Outcome | null): void => {
  const attributes = { 'svc.outcome': outcome?.status ?? 'returned' }
  if (!outcome || outcome.status === 'succeeded') return span.end({ attributes })
  span.end({ attributes, error: outcome.error.code })
}
