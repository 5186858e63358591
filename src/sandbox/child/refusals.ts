/** The errors of calls that were refused because their run had ended or was stopped. */
const refusals = new WeakSet<object>()

/** Marks the error, and returns it. */
export const refused = <Refusal extends Error>(error: Refusal): Refusal => {
  refusals.add(error)
  return error
}

/** Longer chains of causes are not followed. */
const CAUSES = 8

/** Whether a thrown value is such an error, or was caused by one. Never throws. */
export const isRefusal = (thrown: unknown): boolean => {
  try {
    let each = thrown
    for (let n = 0; n < CAUSES && typeof each === 'object' && each !== null; n++) {
      if (refusals.has(each)) return true
      each = (each as { readonly cause?: unknown }).cause
    }
  } catch {} // a getter of user code
  return false
}
