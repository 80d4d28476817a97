/* Replaces logits by their soft-max. */
static void softmax(double *x, int count)
{
    double largest = x[0], total = 0.0;
    int k;
    for (k = 1; k < count; k++)
        if (x[k] > largest)
            largest = x[k];
    for (k = 0; k < count; k++) {
        x[k] = exp(x[k] - largest);
        total += x[k];
    }
    for (k = 0; k < count; k++)
        x[k] /= total;
}
