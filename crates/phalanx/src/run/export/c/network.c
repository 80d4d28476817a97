/* One layer: y = x * weights + biases. */
static void apply(const struct layer *layer, const float *x, float *y)
{
    int i, o;
    for (o = 0; o < layer->outputs; o++)
        y[o] = layer->biases[o];
    for (i = 0; i < layer->inputs; i++)
        for (o = 0; o < layer->outputs; o++)
            y[o] += x[i] * layer->weights[i * layer->outputs + o];
}

static void cut_below_zero(float *x, int count)
{
    int k;
    for (k = 0; k < count; k++)
        if (x[k] < 0.0f)
            x[k] = 0.0f;
}

/* The soft-max of the last layer; x holds the input of the first, y is room for others. */
static void law_of_layers(const struct agent *own, float *x, float *y, double *probabilities)
{
    const struct network *network = own->network;
    int l, k;
    for (l = 0; l < network->layers; l++) {
        const struct layer *layer = &network->layer[l];
        float *other = x;
        apply(layer, x, y);
        if (l + 1 < network->layers)
            cut_below_zero(y, layer->outputs);
        x = y;
        y = other;
    }
    for (k = 0; k < own->actions; k++)
        probabilities[k] = x[k];
    softmax(probabilities, own->actions);
}
